#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/descriptor.h"

namespace muster {
namespace {

using std::chrono::steady_clock;

// The lock is held only to append one line; a holder that takes longer has been suspended.
constexpr std::chrono::seconds kLockPatience{10};
constexpr std::chrono::milliseconds kLockPause{1};
constexpr int kMaxReopens = 10;

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return FileError("write to", path, errno);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content;
  // In pieces, since a pipe does not tell its size and most files are far below the limit.
  while (file && content.size() <= max_bytes) {
    size_t before = content.size();
    content.resize(before + 64 * 1024);
    file.read(content.data() + before, static_cast<std::streamsize>(content.size() - before));
    content.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (file.bad() || (file.fail() && !file.eof())) {
    if (IsOutOfDescriptors(errno)) return FileError("read", path, errno);
    return Error{Code::kInvalid, "cannot read " + path + ": " + std::strerror(errno),
                 "check the path and who may read the file"};
  }
  if (content.size() > max_bytes) {
    return Error{Code::kInvalid,
                 path + " is larger than the limit of " + std::to_string(max_bytes) + " bytes",
                 "check that it is the right file"};
  }
  return content;
}

Error FileError(std::string_view doing, const std::string& path, int reason) {
  Error error{Code::kUnavailable,
              "cannot " + std::string(doing) + " " + path + ": " + std::strerror(reason)};
  if (IsOutOfDescriptors(reason)) return OutOfDescriptors(std::move(error.message));
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      error.code = Code::kFull;
      error.hint = "make room, then run it again";
      break;
    case EROFS:
      error.code = Code::kReadOnly;
      break;
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case EISDIR:
      error.code = Code::kPermission;
      error.hint = "check the path and the rights there";
      break;
    case EEXIST:
      error.code = Code::kConflict;
      break;
    case ENOENT:
      error.code = Code::kNotFound;
      error.hint = "check the path";
      break;
    default:
      break;
  }
  return error;
}

Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FileError("open", folder, errno);
  const int reason = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (reason != 0) return FileError("sync", folder, reason);
  return {};
}

Status MakePrivateFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return FileError("create", folder, errno);
    }
    if (slash == std::string::npos) break;
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return FileError("create", path, errno);
  if (!S_ISDIR(info.st_mode)) return FileError("create", path, ENOTDIR);
  return {};
}

// The lock of an open file, which other processes see.
class AppendFile::Lock {
 public:
  explicit Lock(int fd) : fd_(fd) {}
  ~Lock() {
    if (held_) flock(fd_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // There is no way to wait for it with an end. A process that was stopped while it had the lock
  // must not stop all others.
  Status Take(const std::string& path) {
    const auto give_up = steady_clock::now() + kLockPatience;
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return FileError("lock", path, errno);
      if (steady_clock::now() >= give_up) {
        return Error{Code::kUnavailable,
                     "another process has kept " + path + " locked for " +
                         std::to_string(kLockPatience.count()) + " s",
                     "look for a Muster process that was stopped"};
      }
      std::this_thread::sleep_for(kLockPause);
    }
    held_ = true;
    return {};
  }

 private:
  const int fd_;
  bool held_ = false;
};

AppendFile::~AppendFile() {
  if (fd_ >= 0) close(fd_);
}

Status AppendFile::Append(std::string_view line, const std::function<bool()>& unless) {
  const std::lock_guard threads(mutex_);
  MUSTER_TRY(outcome_);
  for (int tries = 0; tries < kMaxReopens; ++tries) {
    MUSTER_TRY(OpenIfNeeded());
    Lock lock(fd_);
    MUSTER_TRY(lock.Take(path_));
    // It may have been moved away while we waited for the lock.
    if (!IsAtItsPath()) continue;
    // What made it unnecessary may not be durable yet.
    is_dirty_ = true;
    if (is_regular_ && unless && unless()) return {};
    return WriteLine(line);
  }
  return Error{Code::kUnavailable, path_ + " is replaced all the time"};
}

Status AppendFile::Sync() {
  const std::lock_guard threads(mutex_);
  return SyncFile();
}

Status AppendFile::SyncFile() {
  MUSTER_TRY(outcome_);
  if (!is_dirty_) return {};
  // Pipes and the like cannot be synced, and need not be.
  if (is_regular_ && fdatasync(fd_) != 0) {
    outcome_ = FileError("sync", path_, errno);
    return outcome_;
  }
  is_dirty_ = false;
  return {};
}

// A file that was moved away or deleted keeps what it has; what comes goes to a new one.
Status AppendFile::OpenIfNeeded() {
  if (fd_ >= 0) {
    if (IsAtItsPath()) return {};
    MUSTER_TRY(SyncFile());
    close(fd_);
    fd_ = -1;
  }
  return Open();
}

bool AppendFile::IsAtItsPath() const {
  if (!is_regular_) return true;
  struct stat there {};
  struct stat ours {};
  return stat(path_.c_str(), &there) == 0 && fstat(fd_, &ours) == 0 &&
         there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

Status AppendFile::Open() {
  // For a pipe, reading and writing would hide that it has no reader.
  struct stat info {};
  const bool is_special = stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | (is_special ? O_WRONLY : O_RDWR);
  const int fd = open(path_.c_str(), flags, 0600);
  if (fd < 0) return FileError("open", path_, errno);
  if (fstat(fd, &info) != 0) {
    const int reason = errno;
    close(fd);
    return FileError("open", path_, reason);
  }
  is_regular_ = S_ISREG(info.st_mode);
  // While it is empty, who created it may have been killed before this.
  if (is_regular_ && info.st_size == 0) {
    if (Status synced = SyncFolderOf(path_); !synced) {
      close(fd);
      return synced;
    }
  }
  fd_ = fd;
  return {};
}

// The file is locked.
Status AppendFile::WriteLine(std::string_view line) const {
  std::string whole(line);
  whole += '\n';
  if (!is_regular_) return WriteAll(fd_, whole, path_);
  struct stat info {};
  if (fstat(fd_, &info) != 0) return FileError("write to", path_, errno);
  char last = '\n';
  if (info.st_size > 0 && pread(fd_, &last, 1, info.st_size - 1) != 1) {
    return FileError("read", path_, errno);
  }
  if (last != '\n') whole.insert(whole.begin(), '\n');
  Status written = WriteAll(fd_, whole, path_);
  // If it cannot be cut back either, the next line ends what is left.
  if (!written && ftruncate(fd_, info.st_size) != 0) {
    written = written.error().Within(FileError("repair", path_, errno).message);
  }
  return written;
}

}  // namespace muster
