#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/file_output.h"

namespace muster {

// What is known of one item, in a small file of its own.
struct FileItem {
  enum class Phase { kOpen, kSealed, kFinished };

  std::string item;
  std::string incarnation;
  int64_t epoch = 0;
  std::string holder = {};  // of that epoch
  std::string writer;       // who may change it: another one for each Open
  Phase phase = Phase::kOpen;
  Progress progress = {};
  // Where the item's bytes are: one piece for each holder that wrote any, and how many of its bytes
  // count. What a late holder writes lies behind them.
  std::vector<FilePiece> pieces = {};
  std::string output = {};  // once they are published

  std::string ToJson() const;
  static Result<FileItem> FromJson(std::string_view text, const std::string& origin);
};

// The hidden folder in which the file sink keeps what it knows of one collection: which run writes
// it, and how far each item is. Shared by processes on a file system with flock. Thread-safe.
class FileSinkState {
 public:
  // `folder` is the state's, `output` where published files of the collection go; both for
  // messages and for the check that nobody else's files are there. kConflict: they are, or another
  // run or incarnation has written there, or another process writes there right now.
  // What a standalone migration left unfinished is removed by the next.
  static Result<std::unique_ptr<FileSinkState>> Open(const std::string& folder,
                                                     const std::string& output, const Fence& fence,
                                                     Env& env);
  // What another process has opened; none: there is nothing.
  static Result<std::unique_ptr<FileSinkState>> Existing(const std::string& folder, Env& env);
  ~FileSinkState();

  // Gives the folder an identity, unless it has one. Repeatable, by any number of processes.
  static Status Mark(const std::string& folder, Env& env);
  // As Sink::Identity.
  static Result<std::string> IdentityOf(const std::string& folder);

  // Holds others off, for a few reads and writes.
  class Lock {
   public:
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    friend class FileSinkState;
    Lock(std::unique_lock<std::mutex> threads, int fd) : threads_(std::move(threads)), fd_(fd) {}
    std::unique_lock<std::mutex> threads_;
    int fd_;
  };
  Result<Lock> Acquire();

  // Under the lock:
  Result<std::optional<FileItem>> Load(const std::string& name) const;
  Status Store(const std::string& name, const FileItem& item) const;
  Result<std::vector<FileItem>> LoadAll() const;

  // Where one holder of an item writes.
  std::string PiecePath(const std::string& name, const std::string& writer) const;
  // What all holders of an item have written.
  void RemovePieces(const std::string& name) const;

  const std::string& folder() const { return folder_; }
  bool alone() const { return alone_; }

  // The end of a standalone migration: nothing is left to know.
  Status Remove();

 private:
  FileSinkState(std::string folder, bool alone, int lock_fd, Env& env)
      : folder_(std::move(folder)), alone_(alone), lock_fd_(lock_fd), env_(env) {}
  Status Claim(const std::string& output, const Fence& fence);
  Status RemoveLeftovers();

  const std::string folder_;
  const bool alone_;
  const int lock_fd_;
  Env& env_;
  std::mutex mutex_;
};

// A name for a file out of any text: what a file system might not take is encoded, what is too long
// is cut and made unique by a hash.
std::string SafeFileName(const std::string& text);

}  // namespace muster
