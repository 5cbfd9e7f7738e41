#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "lucene/blobs.h"

namespace muster::lucene {

// One Lucene file of a shard, as listed in a snapshot.
struct ShardFile {
  std::string name;  // Lucene's
  uint64_t length = 0;
  std::string blob;        // the blob's name, or that of its parts without `.partN`
  uint64_t part_size = 0;  // of all parts but the last; `length` if there is only one
  std::string content;     // of a file without a blob: stored in the list itself
  bool is_virtual = false;
  std::optional<uint32_t> checksum;  // from its footer; none before Lucene 4.8
};

class ShardDirectory;

// A file, or a file inside a compound file. Refers to the directory, which must outlive it.
class ShardFileView {
 public:
  // Its name for messages: "REPOSITORY: INDEX[SHARD] FILE".
  const std::string& origin() const { return origin_; }
  uint64_t length() const { return length_; }
  uint64_t read_ahead() const;  // as Blobs::read_ahead

  // Exactly these bytes; kCorrupt if they are past its end.
  Result<std::string> Read(uint64_t offset, uint64_t length) const;
  // The same, replacing the content of `into` and reusing its memory.
  Status ReadInto(uint64_t offset, uint64_t length, std::string& into) const;

  // The whole file, footer included, with its CRC checked.
  Result<std::string> ReadChecked() const;

  // A range of it that is itself a file.
  Result<ShardFileView> Part(std::string_view name, uint64_t offset, uint64_t length) const;

 private:
  friend class ShardDirectory;
  ShardFileView(const ShardDirectory* directory, const ShardFile* file, std::string origin)
      : directory_(directory), file_(file), origin_(std::move(origin)), length_(file->length) {}

  const ShardDirectory* directory_;
  const ShardFile* file_;
  std::string origin_;
  uint64_t start_ = 0;
  uint64_t length_ = 0;
};

// The Lucene files of one shard in one snapshot. Refers to the blobs, which must outlive it.
class ShardDirectory {
 public:
  // From the list of files in `folder`; `origin` names the shard in messages.
  static Result<ShardDirectory> Parse(const Json& list, const Blobs& blobs, std::string folder,
                                      std::string origin);

  const std::string& origin() const { return origin_; }
  const std::map<std::string, ShardFile>& files() const { return files_; }
  bool Has(const std::string& name) const { return files_.contains(name); }
  uint64_t read_ahead() const { return blobs_->read_ahead(); }

  // kCorrupt: not listed in the snapshot.
  Result<ShardFileView> Open(const std::string& name) const;

  Result<std::string> Read(const ShardFile& file, uint64_t offset, uint64_t length) const;
  // The same, replacing the content of `into` and reusing its memory.
  Status ReadInto(const ShardFile& file, uint64_t offset, uint64_t length, std::string& into) const;

  // Reads a whole file in pieces and checks it against the list: its length, and the checksum if
  // listed.
  Status Check(const ShardFile& file) const;

 private:
  const Blobs* blobs_ = nullptr;
  std::string folder_;
  std::string origin_;
  std::map<std::string, ShardFile> files_;
};

// Whether a name from a repository is safe in a path: not empty, no separators, not only dots.
bool IsPlainName(std::string_view name);

}  // namespace muster::lucene
