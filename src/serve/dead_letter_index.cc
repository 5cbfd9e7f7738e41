#include "serve/dead_letter_index.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/json_fields.h"
#include "core/mutex.h"
#include "core/signature.h"
#include "pipeline/pipeline.h"

namespace muster::serve {
namespace {

namespace letter_fields = pipeline::letter_fields;

constexpr int64_t kMaxScan = 256 * 1024 * 1024;  // at a time; the rest comes next time
constexpr int64_t kMaxPageScan = 64 * 1024 * 1024;
constexpr size_t kMaxSignatures = 1'000;
constexpr size_t kShownBytes = 4'000;

bool IsLetterFile(const std::string& name) {
  return name.ends_with("dead-letters.jsonl") || name.ends_with("dead-letters.jsonl.again");
}

// None: not a letter. kInvalid: a newer version of muster wrote it.
Result<std::optional<LetterHead>> ReadHead(const std::string& line, int64_t offset,
                                           bool with_document) {
  const auto parts = pipeline::LetterLine::Of(line);
  if (!parts) return std::optional<LetterHead>();
  const Json& json = parts->head;
  MUSTER_TRY(CheckVersion(VersionOf(json), pipeline::kLetterFormat,
                          "the letter at byte " + std::to_string(offset)));
  if (parts->document.empty() && !json.contains(letter_fields::kDocumentBase64))
    return std::optional<LetterHead>();
  LetterHead head{.offset = offset,
                  .run = TextIn(json, letter_fields::kRun),
                  .collection = TextIn(json, letter_fields::kCollection),
                  .item = TextIn(json, letter_fields::kItem),
                  .id = TextIn(json, letter_fields::kId),
                  .position = TextIn(json, letter_fields::kPosition),
                  .error = TextIn(json, letter_fields::kError)};
  if (with_document) {
    head.document = parts->document.empty()
                        ? '"' + TextIn(json, letter_fields::kDocumentBase64) + '"'
                        : std::string(parts->document.substr(0, kShownBytes));
    head.document.resize(std::min(head.document.size(), kShownBytes));
  }
  return std::optional(std::move(head));
}

}  // namespace

Status DeadLetterIndex::Scan(Known& known) {
  struct stat info {};
  if (stat(known.file.path.c_str(), &info) != 0) {
    return Error{Code::kNotFound, "cannot read " + known.file.path + ": " + std::strerror(errno)};
  }
  if (info.st_ino != known.inode || info.st_size < known.scanned) {
    known.scanned = 0;
    known.inode = info.st_ino;
    known.file.letters = 0;
    known.file.signatures.clear();
    known.file.examples.clear();
    known.newer.clear();
  }
  known.file.bytes = info.st_size;
  known.file.changed = WallTime(
      std::chrono::milliseconds(info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000));
  std::ifstream in(known.file.path, std::ios::binary);
  known.file.problem =
      in ? "" : "it cannot be read: " + std::string(std::strerror(errno)) + "; letters are private";
  in.seekg(known.scanned);
  const int64_t until = known.scanned + kMaxScan;
  // A line without its end is being written.
  for (std::string line; known.scanned < until && std::getline(in, line) && !in.eof();) {
    const int64_t offset = known.scanned;
    known.scanned += static_cast<int64_t>(line.size()) + 1;
    const auto read = ReadHead(line, offset, false);
    if (!read) known.newer = read.error().ToString();
    if (!read || !*read) continue;
    const LetterHead& head = **read;
    ++known.file.letters;
    if (known.file.run.empty()) known.file.run = head.run;
    const std::string signature = SignatureOf(head.error);
    if (known.file.signatures.size() >= kMaxSignatures &&
        !known.file.signatures.contains(signature)) {
      continue;
    }
    ++known.file.signatures[signature];
    known.file.examples.try_emplace(signature, head);
  }
  if (known.file.problem.empty()) known.file.problem = known.newer;
  return {};
}

Result<std::vector<LetterFile>> DeadLetterIndex::Files() {
  const MutexLock lock(mutex_);
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_, error);
  if (error) {
    return Error{Code::kNotFound, "cannot read the folder " + folder_ + ": " + error.message(),
                 "name the one with dead letters with --dead-letters"};
  }
  std::vector<LetterFile> files;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    // Links are not followed: their targets may lie outside the folder.
    if (!IsLetterFile(name) ||
        entries->symlink_status(error).type() != std::filesystem::file_type::regular) {
      continue;
    }
    Known& known = known_[name];
    known.file.name = name;
    known.file.path = entries->path().string();
    if (Scan(known)) files.push_back(known.file);
    if (error) break;
  }
  return files;
}

Result<LetterFile> DeadLetterIndex::Find(const std::string& name) {
  MUSTER_ASSIGN(const std::vector<LetterFile> files, Files());
  for (const LetterFile& file : files) {
    if (file.name == name) return file;
  }
  return Error{Code::kNotFound, "dead-letter file '" + name + "' not found",
               "see /api/v1/dead-letters"};
}

Result<LetterPage> DeadLetterIndex::Read(const std::string& name, int64_t after, int limit,
                                         const std::string& signature) {
  MUSTER_ASSIGN(const LetterFile file, Find(name));
  std::ifstream in(file.path, std::ios::binary);
  if (after > 0) {
    // A valid offset is the start of a line.
    in.seekg(after - 1);
    if (after > file.bytes || in.get() != '\n') {
      return Error{Code::kInvalid, "no letter begins at " + std::to_string(after),
                   "use the 'next' of the page before"};
    }
  }
  LetterPage page;
  int64_t at = after;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const bool full = page.letters.size() >= static_cast<size_t>(limit);
    if (full || at - after > kMaxPageScan) {
      page.next = at;
      break;
    }
    auto read = ReadHead(line, at, true);
    at += static_cast<int64_t>(line.size()) + 1;
    // A letter of a newer version is reported for the file: see Scan.
    if (!read || !*read) continue;
    LetterHead& head = **read;
    if (!signature.empty() && SignatureOf(head.error) != signature) continue;
    page.letters.push_back(std::move(head));
  }
  return page;
}

}  // namespace muster::serve
