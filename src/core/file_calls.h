#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/env.h"

namespace muster {

// The system calls AppendFile uses. The simulator's versions tear, fill up and lose data.
//
// Named after the system calls, but a failure is the negative errno.
class FileCalls {
 public:
  struct Info {
    int64_t size = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    bool is_regular = true;
  };

  virtual ~FileCalls() = default;

  // Opens for appending, creating it for the owner only.
  virtual int Open(const std::string& path, bool also_read) = 0;
  virtual int Stat(const std::string& path, Info& info) = 0;
  virtual int Stat(int fd, Info& info) = 0;
  virtual int TryLock(int fd) = 0;
  virtual void Unlock(int fd) = 0;
  virtual int64_t Write(int fd, std::string_view bytes) = 0;
  // Opens an existing file to write over what it has, which a file that is appended to does not
  // allow.
  virtual int OpenToRewrite(const std::string& path) = 0;
  virtual int64_t WriteAt(int fd, std::string_view bytes, int64_t offset) = 0;
  virtual int64_t Read(int fd, char* to, size_t bytes, int64_t offset) = 0;
  virtual int Truncate(int fd, int64_t size) = 0;
  virtual int Sync(int fd) = 0;
  // Makes a file's directory entry durable.
  virtual int SyncFolderOf(const std::string& path) = 0;
  virtual void Close(int fd) = 0;

  // For waiting on a lock.
  virtual Env& env() = 0;
};

FileCalls& SystemFileCalls();

}  // namespace muster
