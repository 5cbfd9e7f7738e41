#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/mutex.h"
#include "muster/pipeline.h"
#include "pipeline/file/packed_output.h"

namespace muster::pipeline {

// State of one item, in a small file of its own.
struct FileItem {
  enum class Phase { kOpen, kSealed, kFinished };

  std::string item;
  std::string incarnation;
  int64_t epoch = 0;
  std::string holder = {};  // of that epoch
  std::string writer;       // the writer that may change it; new for each Open
  Phase phase = Phase::kOpen;
  Progress progress = {};
  // The item's bytes: one piece per holder that wrote any, and how many bytes of it are committed.
  // Anything a stale holder writes comes after them.
  std::vector<FilePiece> pieces = {};
  std::string output = {};  // once they are published

  std::string ToJson() const;
  static Result<FileItem> FromJson(std::string_view text, const std::string& origin);
};

// The lock of a standalone migration. The lock files of its collections are links to one file, so
// that one descriptor holds them all, however many there are.
struct FileRunLock {
  std::string path;
  Descriptor fd;
};

// The hidden folder where the file sink stores the state of one collection: which run owns it and
// how far each item is. Shared by processes on a file system with flock. Thread-safe.
class FileSinkState {
 public:
  // `folder` holds the state, `output` the published files of the collection; both are used in
  // messages and to check for foreign files. kConflict: there are foreign files, another run or
  // incarnation has written there, or another process is writing now. Unfinished output of a
  // standalone migration is removed by the next. `held` is the lock of this sink's other
  // collections, null before the first.
  static Result<std::unique_ptr<FileSinkState>> Open(const std::string& folder,
                                                     const std::string& output, const Fence& fence,
                                                     std::shared_ptr<FileRunLock>& held, Env& env);
  // Opens the state another process created; null: none.
  static Result<std::unique_ptr<FileSinkState>> Existing(const std::string& folder, Env& env);

  // Gives the folder an identity unless it has one. Idempotent and safe for concurrent processes.
  static Status Mark(const std::string& folder, Env& env);
  // As Sink::Identity.
  static Result<std::string> IdentityOf(const std::string& folder);

  // Excludes other processes for a few reads and writes.
  class Lock {
   public:
    Lock(Lock&&) = default;
    Lock& operator=(Lock&&) = delete;

   private:
    friend class FileSinkState;
    Lock(std::unique_lock<Mutex> threads, Descriptor file)
        : threads_(std::move(threads)), file_(std::move(file)) {}
    std::unique_lock<Mutex> threads_;
    Descriptor file_;  // open only as long as it is locked: there may be many collections
  };
  Result<Lock> Acquire();

  // Under the lock:
  Result<std::optional<FileItem>> Load(const std::string& name) const;
  Status Store(const std::string& name, const FileItem& item) const;
  Result<std::vector<FileItem>> LoadAll() const;

  // The file one holder of an item writes to.
  std::string PiecePath(const std::string& name, const std::string& writer) const;
  // Removes what all holders of an item have written.
  void RemovePieces(const std::string& name) const;

  const std::string& folder() const { return folder_; }
  bool alone() const { return alone_; }

  // Ends a standalone migration: no state is kept.
  Status Remove();

 private:
  FileSinkState(std::string folder, std::shared_ptr<FileRunLock> run_lock, Env& env)
      : folder_(std::move(folder)),
        alone_(run_lock != nullptr),
        run_lock_(std::move(run_lock)),
        env_(env) {}
  Status Claim(const std::string& output, const Fence& fence);
  Status RemoveLeftovers();

  const std::string folder_;
  const bool alone_;
  const std::shared_ptr<FileRunLock> run_lock_;  // of a standalone migration
  Env& env_;
  Mutex mutex_;  // guards the files: their lock is the process's, not a thread's
};

}  // namespace muster::pipeline
