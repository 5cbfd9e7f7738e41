#include <algorithm>
#include <string>

#include "core/base64.h"
#include "core/file.h"
#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/flow/dead_letter_file.h"
#include "pipeline/json/escape.h"
#include "pipeline/json/json_text.h"

namespace muster::pipeline {
namespace {

// Adds what the file is for: most users never named it.
Status ForLetters(Status done) {
  if (done) return done;
  Error error = done.error().Within("the file for dead letters");
  error.hint = "free some space, or name another file with --dead-letters";
  return error;
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
    std::string line = "{\"run\":";
    AppendJsonString(line, run_);
    line += ",\"collection\":";
    AppendJsonString(line, letter.collection);
    line += ",\"target\":";
    AppendJsonString(line, letter.target);
    line += letter.transformed ? ",\"transformed\":true" : ",\"transformed\":false";
    line += ",\"item\":";
    AppendJsonString(line, letter.item);
    line += ",\"id\":";
    AppendJsonString(line, document.id);
    line += ",\"routing\":";
    AppendJsonString(line, document.routing);
    line += ",\"position\":";
    AppendJsonString(line, EscapeBytes(document.position));
    if (document.deleted) line += ",\"deleted\":true";
    if (document.null_is_json) line += ",\"null_is_json\":true";
    if (document.version != 0) line += ",\"version\":" + std::to_string(document.version);
    line += ",\"error\":";
    AppendJsonString(line, letter.reason);
    if (CheckJsonObject(document.body)) {
      line += ",\"document\":";
      const size_t start = line.size();
      line += document.body;
      // In valid JSON, line ends occur only between tokens, where a space is equivalent.
      std::replace_if(
          line.begin() + static_cast<std::ptrdiff_t>(start), line.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
    } else {
      line += ",\"document_base64\":\"" + EncodeBase64(document.body) + '"';
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
