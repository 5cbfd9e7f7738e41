#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_calls.h"
#include "core/record_version.h"
#include "muster/json.h"
#include "muster/migrate.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

inline constexpr RecordFormat kLetterFormat{"dead letter", 1};

// The fields of a dead letter beside its version.
namespace letter_fields {
inline constexpr char kRun[] = "run";
inline constexpr char kCollection[] = "collection";
inline constexpr char kTarget[] = "target";
inline constexpr char kTransformed[] = "transformed";
inline constexpr char kItem[] = "item";
inline constexpr char kId[] = "id";
inline constexpr char kRouting[] = "routing";
inline constexpr char kPosition[] = "position";
inline constexpr char kSinceMs[] = "since_ms";
inline constexpr char kFollows[] = "follows";
inline constexpr char kPart[] = "part";
inline constexpr char kDeleted[] = "deleted";
inline constexpr char kNullIsJson[] = "null_is_json";
inline constexpr char kDocumentVersion[] = "version";
inline constexpr char kError[] = "error";
inline constexpr char kDocument[] = "document";
inline constexpr char kDocumentBase64[] = "document_base64";
}  // namespace letter_fields

// OpenDeadLetters on injected file calls.
std::unique_ptr<DeadLetters> NewDeadLetterFile(const std::string& path, const std::string& run,
                                               FileCalls& calls);

// One line of a dead-letter file. Any field order and white space: people edit these with their own
// tools.
struct LetterLine {
  Json head;                  // all fields; the document's value is not usable
  std::string_view document;  // verbatim; empty: none

  // None: the line is not a JSON object, apart from an invalid document.
  static std::optional<LetterLine> Of(std::string_view line);
};

// Letters of one run that are written the same way.
struct LetterGroup {
  std::string run;
  std::string target;       // empty: written by a version that did not record it
  bool transformed = true;  // the documents have already been transformed
  int64_t since_ms = 0;     // start of the run's incarnation; 0: from a version without it

  auto operator<=>(const LetterGroup&) const = default;
};

struct LetterPlace {
  size_t line = 0;
  std::string collection = {};
  std::string item = {};
  std::string position = {};  // of its document in the source, escaped
  bool deleted = false;
  bool follows = false;  // it was read after others of its shard
  int64_t part = 0;      // as in Document
  // Identifies the failed document within its run: the same in every file, however often it fails
  // and however the rest of the line is edited.
  uint64_t identity = 0;
};

// A snapshot of a dead-letter file: later appends are not read. Lines that are not letters are
// skipped. Of several letters for the same document the last of the latest start counts: a crash
// may have duplicated it, or a redrive failed differently. Thread-safe.
class DeadLetterLog {
 public:
  // kInvalid: the file cannot be read, no line of it is a letter, or a newer version of muster
  // wrote one.
  static Result<DeadLetterLog> Open(const std::string& path);

  // In line order.
  const std::map<LetterGroup, std::vector<LetterPlace>>& letters() const { return letters_; }
  const BadLines& bad_lines() const { return bad_lines_; }

  // Reads the given letters as documents of the source's collections. A position is a number of
  // lines. A letter without a JSON object is a document with a defect. kConflict: the file was
  // replaced.
  std::unique_ptr<Source> Read(const std::vector<LetterPlace>& letters) const;

 private:
  explicit DeadLetterLog(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::map<LetterGroup, std::vector<LetterPlace>> letters_;
  BadLines bad_lines_;
};

}  // namespace muster::pipeline
