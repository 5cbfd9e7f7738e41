#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutex.h"
#include "core/url.h"
#include "muster/pipeline.h"
#include "pipeline/file/file_sink_state.h"

namespace muster::pipeline {

// Encodes the documents of one item. Used by one thread.
class FileEncoder {
 public:
  virtual ~FileEncoder() = default;

  // The file's header. `first` are the first documents; null: none.
  virtual Result<std::string> Header(const Batch* first) = 0;

  // Appends the document. An error refuses it permanently.
  virtual Status Encode(const Document& document, std::string& bytes) = 0;
};

// A file format. Thread-safe.
class FileFormat {
 public:
  virtual ~FileFormat() = default;
  virtual const std::vector<std::string_view>& Endings() const = 0;  // new files get the first

  // Stores what is needed about the collection, here and in its state folder. Idempotent.
  virtual Status Prepare(const Collection& collection, const std::string& state_folder) = 0;
  // `state` outlives the encoder and is not locked.
  virtual Result<std::unique_ptr<FileEncoder>> NewEncoder(const std::string& collection,
                                                          FileSinkState& state) = 0;
};

// Writes files: one per item into its collection's subfolder, or, if the path names a file, a
// single collection into that file. A file appears under its name only when it is complete and
// durable.
//
// Fence and progress are stored beside the files, as FileSinkState: each holder writes its own
// piece, and checks at Flush, Seal and Finish, under a lock, that it still holds the item.
class FileSink final : public Sink {
 public:
  static Result<std::unique_ptr<Sink>> Open(const Url& url, std::unique_ptr<FileFormat> format,
                                            Env& env);

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override;
  Result<std::string> Identity(const std::string& collection) override;
  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override;
  Status Finish(const std::string& collection) override;

 private:
  FileSink(std::string path, bool is_folder, Compression compression,
           std::unique_ptr<FileFormat> format, Env& env);
  std::string OutputOf(const std::string& collection) const;
  std::string StateFolderOf(const std::string& collection) const;
  Status CheckCollection(const std::string& collection);
  static Status CheckOutputs(const FileSinkState& state);
  Status Join(const std::string& collection, FileSinkState& state);

  const std::string path_;
  const bool is_folder_;
  const Compression compression_;
  const std::unique_ptr<FileFormat> format_;
  Env& env_;
  Mutex mutex_;
  std::string only_collection_ GUARDED_BY(mutex_);  // of a single file
  std::shared_ptr<FileRunLock> run_lock_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<FileSinkState>> states_ GUARDED_BY(mutex_);
};

}  // namespace muster::pipeline
