#include "core/file_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/descriptor.h"
#include "core/file.h"
#include "core/sha256.h"
#include "core/url.h"

namespace muster {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

class PlainOutput final : public FileOutput {
 public:
  PlainOutput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
    buffer_.reserve(kBufferBytes);
  }

  Status Append(std::string_view bytes) override {
    if (buffer_.size() + bytes.size() > kBufferBytes) MUSTER_TRY(WriteBuffer());
    if (bytes.size() > kBufferBytes) {
      written_ += bytes.size();
      return WriteAll(fd_.get(), bytes, path_);
    }
    buffer_ += bytes;
    return {};
  }

  Result<uint64_t> Flush() override {
    MUSTER_TRY(WriteBuffer());
    if (fdatasync(fd_.get()) != 0) return FileError("sync", path_, errno);
    return written_;
  }

 private:
  Status WriteBuffer() {
    MUSTER_TRY(WriteAll(fd_.get(), buffer_, path_));
    written_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  const std::string path_;
  const Descriptor fd_;
  std::string buffer_;
  uint64_t written_ = 0;
};

mode_t ModeOf(FileAccess access) { return access == FileAccess::kOwner ? 0600 : 0644; }

}  // namespace

Result<std::unique_ptr<FileOutput>> CreateFileOutput(const std::string& path, FileAccess access) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, ModeOf(access));
  if (fd < 0) return FileError("create", path, errno);
  return std::make_unique<PlainOutput>(path, fd);
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return FileError("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

Status PublishFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return FileError("rename to", to, errno);
  return SyncFolderOf(to);
}

std::string SafeFileName(const std::string& text) {
  constexpr size_t kLongest = 150;
  std::string name = PercentEncode(text);
  if (name.empty()) return "%";
  if (name.starts_with('.')) name = "%2E" + name.substr(1);
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "-" + Sha256Hex(text).substr(0, 16);
  return name;
}

}  // namespace muster
