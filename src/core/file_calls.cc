#include "core/file_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace muster {
namespace {

template <class T>
T OrReason(T result) {
  return result < 0 ? -errno : result;
}

FileCalls::Info InfoOf(const struct stat& info) {
  return {.size = info.st_size,
          .device = info.st_dev,
          .inode = info.st_ino,
          .is_regular = S_ISREG(info.st_mode)};
}

class SystemCalls final : public FileCalls {
 public:
  int Open(const std::string& path, bool also_read) override {
    const int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | (also_read ? O_RDWR : O_WRONLY);
    return OrReason(open(path.c_str(), flags, 0600));
  }
  int Stat(const std::string& path, Info& info) override {
    struct stat found {};
    const int result = OrReason(stat(path.c_str(), &found));
    if (result == 0) info = InfoOf(found);
    return result;
  }
  int Stat(int fd, Info& info) override {
    struct stat found {};
    const int result = OrReason(fstat(fd, &found));
    if (result == 0) info = InfoOf(found);
    return result;
  }
  int TryLock(int fd) override { return OrReason(flock(fd, LOCK_EX | LOCK_NB)); }
  void Unlock(int fd) override { flock(fd, LOCK_UN); }
  int64_t Write(int fd, std::string_view bytes) override {
    return OrReason<int64_t>(write(fd, bytes.data(), bytes.size()));
  }
  int OpenToRewrite(const std::string& path) override {
    return OrReason(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  }
  int64_t WriteAt(int fd, std::string_view bytes, int64_t offset) override {
    return OrReason<int64_t>(pwrite(fd, bytes.data(), bytes.size(), offset));
  }
  int64_t Read(int fd, char* to, size_t bytes, int64_t offset) override {
    return OrReason<int64_t>(pread(fd, to, bytes, offset));
  }
  int Truncate(int fd, int64_t size) override { return OrReason(ftruncate(fd, size)); }
  int Sync(int fd) override { return OrReason(fdatasync(fd)); }
  int SyncFolderOf(const std::string& path) override {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const int fd = OrReason(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return fd;
    const int result = OrReason(fsync(fd));
    close(fd);
    return result;
  }
  void Close(int fd) override { close(fd); }
  Env& env() override { return RealEnv(); }
};

}  // namespace

FileCalls& SystemFileCalls() {
  static SystemCalls calls;
  return calls;
}

}  // namespace muster
