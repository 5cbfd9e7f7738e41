#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/pipeline.h"

namespace muster::sim {

// Documents that change while they are copied. Changes of a collection are numbered, as by a search
// engine: a reader of the changed documents gets them in the order of their last changes.
class WorkChanges {
 public:
  void Change(const std::string& collection, size_t number);

  // The content of a document now.
  std::string BodyOf(const std::string& collection, size_t number) const;

  // A partition that follows others: all documents of its shard that have changed.
  static pipeline::Partition Follower(const std::string& collection, int shard);

  // Documents `begin` to `end` that have changed after `position`, as they are now; their ids are
  // those of `ids`.
  std::unique_ptr<pipeline::Reader> Read(const std::string& collection, size_t begin, size_t end,
                                         const std::vector<std::string>& ids,
                                         const std::string& position) const;

 private:
  struct Document {
    int64_t revision = 0;
    int64_t last_change = 0;
  };

  std::map<std::pair<std::string, size_t>, Document> documents_;
  std::map<std::string, int64_t> changes_;  // so far, by collection
};

}  // namespace muster::sim
