#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/base64.h"
#include "base/json.h"
#include "muster/migrate.h"
#include "pipeline/escape.h"
#include "pipeline/json_text.h"

namespace muster {
namespace {

class DeadLetterFile final : public DeadLetters {
 public:
  DeadLetterFile(std::string path, std::string run)
      : path_(std::move(path)), run_(std::move(run)) {}

  ~DeadLetterFile() override {
    if (fd_ >= 0) close(fd_);
  }

  Status Add(const std::string& collection, const std::string& item, const Document& document,
             std::string_view reason) override {
    const std::string line = LineOf(collection, item, document, reason);
    std::lock_guard lock(mutex_);
    if (fd_ < 0) MUSTER_TRY(Open());
    // One write a letter: those of several processes never mix.
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t done = write(fd_, rest.data(), rest.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return Failed("cannot write");
      rest.remove_prefix(static_cast<size_t>(done));
    }
    dirty_ = true;
    return {};
  }

  Status Flush() override {
    std::lock_guard lock(mutex_);
    if (!dirty_) return {};
    if (fdatasync(fd_) != 0) return Failed("cannot write");
    dirty_ = false;
    return {};
  }

 private:
  std::string LineOf(const std::string& collection, const std::string& item,
                     const Document& document, std::string_view reason) const {
    std::string line = "{\"run\":";
    AppendJsonString(line, run_);
    line += ",\"collection\":";
    AppendJsonString(line, collection);
    line += ",\"item\":";
    AppendJsonString(line, item);
    line += ",\"id\":";
    AppendJsonString(line, document.id);
    line += ",\"routing\":";
    AppendJsonString(line, document.routing);
    line += ",\"position\":";
    AppendJsonString(line, EscapeBytes(document.position));
    if (document.deleted) line += ",\"deleted\":true";
    if (document.version != 0) line += ",\"version\":" + std::to_string(document.version);
    line += ",\"error\":";
    AppendJsonString(line, reason);
    if (CheckJsonObject(document.body)) {
      line += ",\"document\":";
      const size_t start = line.size();
      line += document.body;
      // Line ends stand between the parts of valid JSON only, where spaces do as well.
      std::replace_if(
          line.begin() + static_cast<std::ptrdiff_t>(start), line.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
    } else {
      line += ",\"document_base64\":\"" + EncodeBase64(document.body) + '"';
    }
    line += "}\n";
    return line;
  }

  Status Open() {
    fd_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) return Failed("cannot open");
    // A crash may have left half a letter: what follows must not become part of it.
    struct stat info {};
    char last = '\n';
    if (fstat(fd_, &info) == 0 && info.st_size > 0 && pread(fd_, &last, 1, info.st_size - 1) == 1 &&
        last != '\n' && write(fd_, "\n", 1) != 1) {
      return Failed("cannot write");
    }
    return {};
  }

  Error Failed(const char* what) const {
    const int reason = errno;
    return {
        reason == ENOSPC || reason == EDQUOT ? Code::kFull : Code::kInvalid,
        std::string(what) + " the file for dead letters, " + path_ + ": " + std::strerror(reason),
        "make room, or name another file with --dead-letters"};
  }

  const std::string path_;
  const std::string run_;
  std::mutex mutex_;
  int fd_ = -1;
  bool dirty_ = false;
};

}  // namespace

Result<std::unique_ptr<DeadLetters>> OpenDeadLetters(const std::string& path,
                                                     const std::string& run) {
  if (path.empty()) return Error{Code::kInvalid, "no file for dead letters is named"};
  return std::make_unique<DeadLetterFile>(path, run);
}

}  // namespace muster
