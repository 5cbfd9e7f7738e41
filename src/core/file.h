#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/condition.h"
#include "muster/result.h"

namespace muster {

class FileCalls;

// The content of a file of at most `max_bytes`. kInvalid, with path and reason: missing, unreadable
// or too large.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

// Maps an errno for a file: kFull, kReadOnly, kPermission, kConflict, kNotFound, or kUnavailable.
Error FileError(std::string_view doing, const std::string& path, int reason);

// Makes a file's directory entry durable.
Status SyncFolderOf(const std::string& path);

// Creates a folder and its parents, accessible to the owner only. Existing ones are left alone.
Status MakePrivateFolders(const std::string& path);

// An append-only file of lines, shared by Muster's threads and processes. It is created with the
// first line, readable by its owner only. Thread-safe.
//
// An acknowledged line is complete and stays complete:
// - Appending takes the file lock, so that writers never interleave.
// - A line that could not be written completely, on a full disk say, is truncated away.
// - An unterminated last line, left by a crash or another program, gets a line end before ours. It
//   is not removed, since it may be a complete line that an editor left unterminated; if it is
//   torn, readers find one bad line.
// - After a failed sync it is unknown which lines reached the disk, and the kernel reports the
//   error only once. So lines are kept in memory until they are durable, and appended again to the
//   reopened file: they may occur twice, separated from whatever the disk holds in their place.
//
// A file that was moved or deleted is created again. Anything but a regular file, such as a pipe,
// is written to directly, without waiting.
class AppendFile {
 public:
  explicit AppendFile(std::string path);
  AppendFile(std::string path, FileCalls& calls);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Appends `line`, without a line end. `unless` is called while a regular file is locked: true
  // skips the append. An error means that the line is not in the file; kUnavailable: another
  // process has held the lock for seconds.
  Status Append(std::string_view line, const std::function<bool()>& unless = nullptr);

  // Makes appended lines durable. After an error they may not be; the next call of Append or Sync
  // appends them again before anything else.
  Status Sync();

  // Calls `act` while a regular file is locked: to move it away, say.
  Status WhileLocked(const std::function<void()>& act);

  const std::string& path() const { return path_; }

 private:
  class Lock;
  Status Locked(const std::function<Status()>& act);
  Status Open();
  Status OpenIfNeeded();
  bool IsAtItsPath() const;
  Status WriteAll(std::string_view bytes) const;
  void WriteLastEndAgain(int64_t offset);
  Status WriteLines(std::string_view lines);
  Status SyncFile();
  Status Recover();

  const std::string path_;
  FileCalls& calls_;
  LongLock threads_;
  int fd_ = -1;
  bool is_regular_ = false;
  bool is_fresh_ = false;     // nothing was written since it was opened
  std::string unsynced_;      // lines that may not be durable, each with its end
  bool sync_failed_ = false;  // of unsynced_: they have to be appended again
};

}  // namespace muster
