#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lucene/blobs.h"

namespace muster::lucene {

// One Lucene file of a shard, as a snapshot lists it.
struct ShardFile {
  std::string name;  // Lucene's
  uint64_t length = 0;
  std::string blob;        // the name of the blob, or of its parts without `.partN`
  uint64_t part_size = 0;  // of all parts but the last; `length` if there is one part
  std::string content;     // of a file that has no blob: it stands in the list itself
  bool is_virtual = false;
  std::optional<uint32_t> checksum;  // what its footer says; not for files before Lucene 4.8
};

class ShardDirectory;

// A file, or the part of a compound file that is one. Refers to the directory, which must outlive
// it.
class ShardFileView {
 public:
  // What a person knows it by: "REPOSITORY: INDEX[SHARD] FILE".
  const std::string& origin() const { return origin_; }
  uint64_t length() const { return length_; }
  uint64_t read_ahead() const;  // as Blobs::read_ahead

  // Exactly these bytes; kCorrupt when they lie beyond its end.
  Result<std::string> Read(uint64_t offset, uint64_t length) const;
  // The same in place of what `into` held, whose memory is used again.
  Status ReadInto(uint64_t offset, uint64_t length, std::string& into) const;

  // All of it, footer included, with its CRC found right.
  Result<std::string> ReadChecked() const;

  // A range of it that is a file by itself.
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
  // From the list of files that lies in `folder`; `origin` names the shard in messages.
  static Result<ShardDirectory> Parse(const Json& list, const Blobs& blobs, std::string folder,
                                      std::string origin);

  const std::string& origin() const { return origin_; }
  const std::map<std::string, ShardFile>& files() const { return files_; }
  bool Has(const std::string& name) const { return files_.contains(name); }
  uint64_t read_ahead() const { return blobs_->read_ahead(); }

  // kCorrupt when the snapshot does not list it.
  Result<ShardFileView> Open(const std::string& name) const;

  Result<std::string> Read(const ShardFile& file, uint64_t offset, uint64_t length) const;
  // The same in place of what `into` held, whose memory is used again.
  Status ReadInto(const ShardFile& file, uint64_t offset, uint64_t length, std::string& into) const;

  // Reads all of a file in pieces and holds it against the list: its length, and the checksum if
  // the list has one.
  Status Check(const ShardFile& file) const;

 private:
  const Blobs* blobs_ = nullptr;
  std::string folder_;
  std::string origin_;
  std::map<std::string, ShardFile> files_;
};

// Whether a name from a repository is safe to build a path with: not empty, no separators, no dots
// only.
bool IsPlainName(std::string_view name);

}  // namespace muster::lucene
