#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/pipeline.h"
#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {

// An in-memory sink for tests: fenced, with progress stored beside the documents as in a database.
// Thread-safe.
class MemorySink final : public Sink {
 public:
  struct Entry {
    std::string id;
    std::string body;

    bool operator==(const Entry&) const = default;
  };

  // Why to refuse a document; empty: accept it.
  std::function<std::string(const Document& document)> refuse = {};
  // The error for a write of this many documents, if any.
  std::function<Status(size_t documents)> fail = {};
  // The error for opening a collection, if any.
  std::function<Status(const std::string& collection)> fail_collection = {};

  std::vector<Entry> Documents(const std::string& collection) const;
  std::vector<size_t> BatchSizes(const std::string& collection) const;
  std::set<std::string> FinishedItems() const;
  std::set<std::string> FinishedCollections() const;

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override;
  bool CanDelete() const override { return true; }
  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override;
  Status Finish(const std::string& collection) override;

 private:
  class MemoryWriter;
  struct Contents {
    std::vector<Entry> documents;
    std::vector<size_t> batch_sizes;
  };
  struct Item {
    std::optional<StoredFence> fence = {};
    bool finished = false;
    std::optional<Progress> progress = {};
  };

  mutable Mutex mutex_;
  std::map<std::string, Contents> collections_ GUARDED_BY(mutex_);
  std::map<std::string, Item> items_ GUARDED_BY(mutex_);  // by run and item
  std::set<std::string> finished_ GUARDED_BY(mutex_);
};

}  // namespace muster::pipeline
