#include <algorithm>
#include <string>

#include "core/base64.h"
#include "core/escape_bytes.h"
#include "core/file.h"
#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/flow/dead_letter_file.h"
#include "pipeline/json/json_text.h"

namespace muster::pipeline {
namespace {

// Adds what the file is for: most users never named it.
Status ForLetters(Status done) {
  if (done) return done;
  Error error = done.error().Within("the file for dead letters").By(Party::kDeadLetters);
  error.hint = "free some space, or name another file with --dead-letters";
  return error;
}

void AppendRaw(std::string& line, std::string_view name, std::string_view value) {
  if (line.size() > 1) line += ',';
  AppendJsonString(line, name);
  line += ':';
  line += value;
}

void AppendText(std::string& line, std::string_view name, std::string_view text) {
  AppendRaw(line, name, "");
  AppendJsonString(line, text);
}

class DeadLetterFile final : public DeadLetters {
 public:
  DeadLetterFile(std::string path, std::string run, FileCalls& calls)
      : file_(std::move(path), calls), run_(std::move(run)) {}

  Status Add(const DeadLetter& letter) override { return ForLetters(file_.Append(LineOf(letter))); }

  Status Flush() override { return ForLetters(file_.Sync()); }

 private:
  std::string LineOf(const DeadLetter& letter) const {
    const Document& document = letter.document;
    std::string line = "{";
    AppendRaw(line, kVersionField, std::to_string(kLetterFormat.version));
    AppendText(line, letter_fields::kRun, run_);
    AppendText(line, letter_fields::kCollection, letter.collection);
    AppendText(line, letter_fields::kTarget, letter.target);
    AppendRaw(line, letter_fields::kTransformed, letter.transformed ? "true" : "false");
    AppendText(line, letter_fields::kItem, letter.item);
    AppendText(line, letter_fields::kId, document.id);
    AppendText(line, letter_fields::kRouting, document.routing);
    AppendText(line, letter_fields::kPosition, EscapeBytes(document.position));
    if (letter.since_ms != 0)
      AppendRaw(line, letter_fields::kSinceMs, std::to_string(letter.since_ms));
    if (letter.follows) AppendRaw(line, letter_fields::kFollows, "true");
    if (document.part != 0) AppendRaw(line, letter_fields::kPart, std::to_string(document.part));
    if (document.deleted) AppendRaw(line, letter_fields::kDeleted, "true");
    if (document.null_is_json) AppendRaw(line, letter_fields::kNullIsJson, "true");
    if (document.version != 0)
      AppendRaw(line, letter_fields::kDocumentVersion, std::to_string(document.version));
    AppendText(line, letter_fields::kError, letter.reason);
    if (CheckJsonObject(document.body)) {
      const size_t start = line.size();
      AppendRaw(line, letter_fields::kDocument, document.body);
      // In valid JSON, line ends occur only between tokens, where a space is equivalent.
      std::replace_if(
          line.begin() + static_cast<std::ptrdiff_t>(start), line.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
    } else {
      AppendText(line, letter_fields::kDocumentBase64, EncodeBase64(document.body));
    }
    line += '}';
    return line;
  }

  AppendFile file_;
  const std::string run_;
};

}  // namespace

Result<std::unique_ptr<DeadLetters>> OpenDeadLetters(const std::string& path,
                                                     const std::string& run) {
  if (path.empty()) return Error{Code::kInvalid, "no file for dead letters is named"};
  return NewDeadLetterFile(path, run, SystemFileCalls());
}

std::unique_ptr<DeadLetters> NewDeadLetterFile(const std::string& path, const std::string& run,
                                               FileCalls& calls) {
  return std::make_unique<DeadLetterFile>(path, run, calls);
}

}  // namespace muster::pipeline
