#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/condition.h"
#include "muster/result.h"

namespace muster {

class FileCalls;

// The whole content of a file of at most `max_bytes`. kInvalid, with the path and the reason, when
// there is no such file, it cannot be read, or it is larger.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

// What an errno says of a file: kFull, kReadOnly, kPermission, kConflict, kNotFound, or
// kUnavailable.
Error FileError(std::string_view doing, const std::string& path, int reason);

// Makes the name of a file in its folder durable.
Status SyncFolderOf(const std::string& path);

// Makes a folder, and those that lead to it, for its owner alone. What is there already is left as
// it is.
Status MakePrivateFolders(const std::string& path);

// A file of lines that grows, shared by the threads and processes of Muster. It is created with the
// first line, readable for its owner alone. Thread-safe.
//
// A line that was acknowledged is whole and stays whole:
// - Appending takes the file's lock, so that no two writers mix.
// - Of a line that could not be written to its end, on a full disk say, nothing stays: the file is
//   cut back to what it was.
// - A last line without an end, which a crash or another program has left, gets one before ours. It
//   is not cut off, since it may be a whole line that an editor has left without an end; if it is
//   torn, readers find one bad line.
//
// A file that was moved away or deleted is created anew. What is no regular file, such as a pipe,
// is written to as it is, without waiting.
class AppendFile {
 public:
  explicit AppendFile(std::string path);
  AppendFile(std::string path, FileCalls& calls);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Appends `line`, which has no end of its own. `unless` is asked while a regular file is locked:
  // true leaves it as it is. An error means that the line is not there; kUnavailable: another
  // process has held the lock for seconds.
  Status Append(std::string_view line, const std::function<bool()>& unless = nullptr);

  // Makes what was appended durable. After a failure it is unknown which lines reached the disk,
  // and the kernel reports the error only once: all later calls of this instance fail.
  Status Sync();

  const std::string& path() const { return path_; }

 private:
  class Lock;
  Status Open();
  Status OpenIfNeeded();
  bool IsAtItsPath() const;
  Status WriteAll(std::string_view bytes) const;
  Status WriteLine(std::string_view line) const;
  Status SyncFile();

  const std::string path_;
  FileCalls& calls_;
  LongLock threads_;
  int fd_ = -1;
  bool is_regular_ = false;
  bool is_dirty_ = false;
  Status outcome_ = {};  // of the last sync
};

}  // namespace muster
