#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/json.h"
#include "muster/pipeline.h"

namespace muster {

// Lines of a file that are no dead letters: torn by a crash, or not ours.
struct BadLines {
  static constexpr size_t kMaxNamed = 10;

  int64_t count = 0;
  std::vector<size_t> first = {};  // their numbers, up to kMaxNamed

  void Add(size_t number);
  // "2 lines are no dead letters and were skipped: 3, 17"
  std::string ToString() const;
};

// A line of a file of dead letters, whichever order its fields are in and whatever space is between
// them: people edit letters with tools of their own.
struct LetterLine {
  Json head;                  // all fields; the document's is not to be used
  std::string_view document;  // as it stands in the line; empty: there is none

  // None: the line is no JSON object, a document that is none aside.
  static std::optional<LetterLine> Of(std::string_view line);
};

// Letters of one run that are to be written in one way.
struct LetterGroup {
  std::string run;
  std::string target;       // empty: an earlier version wrote them, which did not say it
  bool transformed = true;  // the documents are as the sink is to have them

  auto operator<=>(const LetterGroup&) const = default;
};

// One letter of a file.
struct LetterPlace {
  size_t line = 0;
  std::string collection = {};
  std::string item = {};
  std::string position = {};  // of its document in the source, escaped
  bool deleted = false;
  // Names the document of the run that failed: the same in every file, however often it fails, and
  // whatever is done to the rest of the line.
  uint64_t identity = 0;
};

// A file of dead letters as it was when it was opened: what is appended later is not read. Lines
// that are no letters are skipped, and of several about the same document the last counts: a crash
// may have left it twice, or a redrive failed in another way. Thread-safe.
class DeadLetterLog {
 public:
  // kInvalid: the file cannot be read, or has lines and none of them is a letter.
  static Result<DeadLetterLog> Open(const std::string& path);

  // In the order of their lines.
  const std::map<LetterGroup, std::vector<LetterPlace>>& letters() const { return letters_; }
  const BadLines& bad_lines() const { return bad_lines_; }

  // Reads these of its letters, as documents of the source's collections. A position is a
  // number of lines. A letter that holds no JSON object is a document with a defect. kConflict: the
  // file is another one meanwhile.
  std::unique_ptr<Source> Read(const std::vector<LetterPlace>& letters) const;

 private:
  explicit DeadLetterLog(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::map<LetterGroup, std::vector<LetterPlace>> letters_;
  BadLines bad_lines_;
};

}  // namespace muster
