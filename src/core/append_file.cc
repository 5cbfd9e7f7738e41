#include <cerrno>

#include "core/file.h"
#include "core/file_calls.h"
#include "core/planted_bug.h"

namespace muster {
namespace {

// The lock is held only while appending one line; a holder that takes longer has been suspended.
constexpr std::chrono::seconds kLockPatience{10};
constexpr std::chrono::milliseconds kLockPause{1};
constexpr int kMaxReopens = 10;
constexpr size_t kMaxUnsynced = 16 * 1024 * 1024;  // bytes to remember; then they are synced

}  // namespace

// An open-file-description lock, visible to other processes.
class AppendFile::Lock {
 public:
  Lock(FileCalls& calls, int fd) : calls_(calls), fd_(fd) {}
  ~Lock() {
    if (held_) calls_.Unlock(fd_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // There is no lock call with a timeout, and a process stopped while holding the lock must not
  // block all others.
  Status Take(const std::string& path) {
    Env& env = calls_.env();
    const MonoTime give_up = env.MonoNow() + kLockPatience;
    for (;;) {
      const int taken = calls_.TryLock(fd_);
      if (taken >= 0) break;
      if (taken != -EWOULDBLOCK && taken != -EINTR) return FileError("lock", path, -taken);
      if (env.MonoNow() >= give_up) {
        return Error{Code::kUnavailable,
                     "another process has kept " + path + " locked for " +
                         std::to_string(kLockPatience.count()) + " s",
                     "look for a Muster process that was stopped"};
      }
      env.Sleep(kLockPause, {});
    }
    held_ = true;
    return {};
  }

 private:
  FileCalls& calls_;
  const int fd_;
  bool held_ = false;
};

AppendFile::AppendFile(std::string path) : AppendFile(std::move(path), SystemFileCalls()) {}

AppendFile::AppendFile(std::string path, FileCalls& calls)
    : path_(std::move(path)), calls_(calls), threads_(calls.env()) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) calls_.Close(fd_);
}

Status AppendFile::Append(std::string_view line, const std::function<bool()>& unless) {
  const LongLockGuard threads(threads_);
  if (sync_failed_) MUSTER_TRY(Recover());
  if (unsynced_.size() + line.size() > kMaxUnsynced) MUSTER_TRY(SyncFile());
  return Locked([&]() -> Status {
    std::string whole(line);
    whole += '\n';
    if (!is_regular_) return WriteAll(whole);
    if (!unless || !unless()) MUSTER_TRY(WriteLines(whole));
    // Also for a skipped line: the existing one may not be durable yet.
    unsynced_ += whole;
    return {};
  });
}

Status AppendFile::WhileLocked(const std::function<void()>& act) {
  const LongLockGuard threads(threads_);
  return Locked([&]() -> Status {
    if (is_regular_) act();
    return {};
  });
}

Status AppendFile::Locked(const std::function<Status()>& act) {
  for (int tries = 0; tries < kMaxReopens; ++tries) {
    MUSTER_TRY(OpenIfNeeded());
    Lock lock(calls_, fd_);
    MUSTER_TRY(lock.Take(path_));
    // The file may have been moved while we waited for the lock.
    if (IsAtItsPath()) return act();
  }
  return Error{Code::kUnavailable, path_ + " keeps being replaced by another process"};
}

Status AppendFile::Sync() {
  const LongLockGuard threads(threads_);
  return SyncFile();
}

Status AppendFile::SyncFile() {
  if (sync_failed_) return Recover();
  if (unsynced_.empty() || PLANTED_BUG(letters_are_not_synced)) return {};
  if (calls_.Sync(fd_) != 0 && !PLANTED_BUG(failed_syncs_are_ignored)) {
    sync_failed_ = true;
    return Recover();
  }
  unsynced_.clear();
  return {};
}

// Another sync of the same pages would succeed without writing them, so the lines are written to
// new ones. The lock is held until they are durable, so that another failure can be truncated away.
Status AppendFile::Recover() {
  if (fd_ >= 0) calls_.Close(fd_);
  fd_ = -1;
  MUSTER_TRY(Open());
  Lock lock(calls_, fd_);
  MUSTER_TRY(lock.Take(path_));
  FileCalls::Info info;
  if (const int found = calls_.Stat(fd_, info); found != 0) {
    return FileError("write to", path_, -found);
  }
  // The disk may hold garbage without a line end in place of the old lines.
  MUSTER_TRY(WriteLines("\n" + unsynced_));
  if (const int synced = calls_.Sync(fd_); synced != 0) {
    calls_.Truncate(fd_, info.size);
    return FileError("sync", path_, -synced);
  }
  unsynced_.clear();
  sync_failed_ = false;
  return {};
}

// A file that was moved or deleted keeps its content; new lines go to a new file.
Status AppendFile::OpenIfNeeded() {
  if (fd_ >= 0) {
    if (IsAtItsPath()) return {};
    MUSTER_TRY(SyncFile());
    if (IsAtItsPath()) return {};
    calls_.Close(fd_);
    fd_ = -1;
  }
  return Open();
}

bool AppendFile::IsAtItsPath() const {
  FileCalls::Info there;
  FileCalls::Info ours;
  return calls_.Stat(path_, there) == 0 && calls_.Stat(fd_, ours) == 0 &&
         there.inode == ours.inode && there.device == ours.device;
}

Status AppendFile::Open() {
  // Opening a pipe for reading and writing would hide that it has no reader.
  FileCalls::Info info;
  const bool is_special = calls_.Stat(path_, info) == 0 && !info.is_regular;
  const int fd = calls_.Open(path_, !is_special);
  if (fd < 0) return FileError("open", path_, -fd);
  if (const int found = calls_.Stat(fd, info); found != 0) {
    calls_.Close(fd);
    return FileError("open", path_, -found);
  }
  is_regular_ = info.is_regular;
  // While it is empty, its creator may have been killed before syncing the folder.
  if (is_regular_ && info.size == 0 && !PLANTED_BUG(names_are_not_synced)) {
    if (const int synced = calls_.SyncFolderOf(path_); synced != 0) {
      calls_.Close(fd);
      return FileError("sync the folder of", path_, -synced);
    }
  }
  fd_ = fd;
  is_fresh_ = true;
  return {};
}

// A process that died after a failed sync may have left lines that are not on disk: without a line
// end there, ours would be a part of them. Best effort: some files can only be appended to.
void AppendFile::WriteLastEndAgain(int64_t offset) {
  const int fd = calls_.OpenToRewrite(path_);
  if (fd < 0) return;
  calls_.WriteAt(fd, "\n", offset);
  calls_.Close(fd);
}

Status AppendFile::WriteAll(std::string_view bytes) const {
  while (!bytes.empty()) {
    const int64_t done = calls_.Write(fd_, bytes);
    if (done == -EINTR) continue;
    if (done < 0) return FileError("write to", path_, static_cast<int>(-done));
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

// Requires the file lock. All of the lines or none.
Status AppendFile::WriteLines(std::string_view lines) {
  FileCalls::Info info;
  if (const int found = calls_.Stat(fd_, info); found != 0) {
    return FileError("write to", path_, -found);
  }
  char last = '\n';
  if (info.size > 0) {
    const int64_t read = calls_.Read(fd_, &last, 1, info.size - 1);
    if (read != 1) return FileError("read", path_, read < 0 ? static_cast<int>(-read) : EIO);
  }
  if (is_fresh_ && info.size > 0 && last == '\n') WriteLastEndAgain(info.size - 1);
  is_fresh_ = false;
  const bool is_torn = last != '\n' && !PLANTED_BUG(torn_lines_are_continued);
  Status written = WriteAll((is_torn ? "\n" : "") + std::string(lines));
  // If truncating fails too, the next line terminates the torn one.
  if (!written && !PLANTED_BUG(torn_lines_are_continued)) {
    const int cut = calls_.Truncate(fd_, info.size);
    if (cut != 0) written = written.error().Within(FileError("repair", path_, -cut).message);
  }
  return written;
}

}  // namespace muster
