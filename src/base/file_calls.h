#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/env.h"

namespace muster {

// What AppendFile asks of the system. The simulator's files are torn, full and lost instead.
//
// As the calls of the system that they are named after, but a failure is the negative errno.
class FileCalls {
 public:
  struct Info {
    int64_t size = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    bool is_regular = true;
  };

  virtual ~FileCalls() = default;

  // To append to, created for its owner alone.
  virtual int Open(const std::string& path, bool also_read) = 0;
  virtual int Stat(const std::string& path, Info& info) = 0;
  virtual int Stat(int fd, Info& info) = 0;
  virtual int TryLock(int fd) = 0;
  virtual void Unlock(int fd) = 0;
  virtual int64_t Write(int fd, std::string_view bytes) = 0;
  virtual int64_t Read(int fd, char* to, size_t bytes, int64_t offset) = 0;
  virtual int Truncate(int fd, int64_t size) = 0;
  virtual int Sync(int fd) = 0;
  // Makes the name of a file in its folder durable.
  virtual int SyncFolderOf(const std::string& path) = 0;
  virtual void Close(int fd) = 0;

  // To wait for a lock.
  virtual Env& env() = 0;
};

FileCalls& SystemFileCalls();

}  // namespace muster
