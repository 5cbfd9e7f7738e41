#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/pipeline.h"

namespace muster::pipeline {

// An in-memory source for tests and simulations. Positions are zero-padded document numbers,
// "000042"; each partition has `partition_documents` documents. Must not change while it is read.
// Split gives up half of what is left, down to single documents.
class MemorySource final : public Source {
 public:
  struct Entry {
    std::string id;
    std::string body;
    std::string routing = {};
    std::string defect = {};
  };

  explicit MemorySource(size_t partition_documents) : partition_documents_(partition_documents) {}

  void Add(const std::string& collection, Entry entry);

  // From now on, Next fails with `error` at this document of the collection.
  void FailAt(const std::string& collection, size_t number, Error error);

  static std::string PositionOf(size_t number);

  Result<std::vector<Collection>> Collections() override;
  Result<std::vector<Partition>> Partitions(const std::string& collection) override;
  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override;
  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override;

 private:
  class MemoryReader;
  struct Contents {
    std::vector<Entry> entries;
    std::map<size_t, Error> failures;
  };
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  Range RangeOf(const Partition& partition, const Contents& contents) const;

  const size_t partition_documents_;
  std::map<std::string, Contents> collections_;
};

}  // namespace muster::pipeline
