#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "muster/pipeline.h"
#include "pipeline/file_sink_state.h"

namespace muster {

// How the documents of one item become bytes. Used by one thread.
class FileEncoder {
 public:
  virtual ~FileEncoder() = default;

  // What the file begins with. `first` are the first documents; null: there are none.
  virtual Result<std::string> Header(const Batch* first) = 0;

  // Appends the document. An error refuses it for good.
  virtual Status Encode(const Document& document, std::string& bytes) = 0;
};

// What one kind of file is like. Thread-safe.
class FileFormat {
 public:
  virtual ~FileFormat() = default;
  virtual const std::vector<std::string_view>& Endings() const = 0;  // the first is for new files

  // Keeps what is to be known of the collection, here and in its state's folder. Repeatable.
  virtual Status Prepare(const Collection& collection, const std::string& state_folder) = 0;
  // `state` outlives the encoder and is not locked.
  virtual Result<std::unique_ptr<FileEncoder>> NewEncoder(const std::string& collection,
                                                          FileSinkState& state) = 0;
};

// Writes files: into a folder, one for each item in the folder of its collection, or one for all
// of a single collection if the path names a file. Nothing is seen under its name before it is
// complete and durable.
//
// Fence and progress are kept beside the files, as FileSinkState: each holder writes a piece of its
// own, and at Flush, Seal and Finish finds out, under a lock, whether it still holds the item.
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
  std::mutex mutex_;
  std::string only_collection_;  // of a single file
  std::map<std::string, std::shared_ptr<FileSinkState>> states_;
};

}  // namespace muster
