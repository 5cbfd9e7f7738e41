#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/url.h"
#include "muster/pipeline.h"
#include "pipeline/file/file_list.h"
#include "pipeline/file/record_reader.h"

namespace muster::pipeline {

// URL options common to all file formats.
struct FileSourceOptions {
  std::string path;
  std::vector<std::string_view> endings;
  uint64_t partition_bytes = uint64_t{64} << 20;
  size_t max_document_bytes = size_t{32} << 20;

  static Result<FileSourceOptions> From(const Url& url, std::vector<std::string_view> endings);
};

// A byte range of one file's decompressed content. A record belongs to the range that contains its
// first byte.
struct FileRange {
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX;
};

// Files of records: large ones are split into partitions by byte range, compressed ones are one
// partition. Positions are byte offsets in 16 digits.
class FileSource : public Source {
 public:
  explicit FileSource(FileSourceOptions options) : options_(std::move(options)) {}

  Result<std::vector<Collection>> Collections() override;
  Result<std::optional<std::string>> TargetOf(const std::string& collection) override;
  Result<std::vector<Partition>> Partitions(const std::string& collection) override;
  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override;
  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override;

 protected:
  const FileSourceOptions& options() const { return options_; }

  // The collection's schema, as in Collection.
  virtual Result<std::string> Metadata(const FileCollection& collection) = 0;

  // Where the partitions of a plain file begin, about `partition_bytes` apart. The first is 0.
  virtual Result<std::vector<uint64_t>> Cuts(const FileEntry& file, uint64_t partition_bytes) = 0;

  virtual Result<std::unique_ptr<Reader>> ReadRange(const FileEntry& file,
                                                    const FileRange& range) = 0;

 private:
  Result<FileCollection> Find(const std::string& collection);

  const FileSourceOptions options_;
};

std::string FilePosition(uint64_t offset);

// A location in a file for messages: "orders.jsonl:17 (byte 1234)"; line 0: unknown.
std::string FilePlace(const std::string& path, uint64_t line, uint64_t offset);

}  // namespace muster::pipeline
