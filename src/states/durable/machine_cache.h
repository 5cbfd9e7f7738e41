#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/mutex.h"
#include "muster/store.h"
#include "states/asl/definition.h"
#include "states/asl/jsonata_engine.h"
#include "states/durable/flow_record.h"

namespace muster::states {

// Parsed definitions, by the key of their text. Thread-safe.
class MachineCache {
 public:
  MachineCache(store::Store& store, JsonataEngine* jsonata) : store_(store), jsonata_(jsonata) {}

  // Reads it from the store if it is not cached.
  Result<std::shared_ptr<const Definition>> Find(const std::string& key) EXCLUDES(mutex_);
  // The definition of a flow. kCorrupt: it has no such state.
  Result<std::shared_ptr<const Definition>> FindFor(const FlowRecord& record) EXCLUDES(mutex_);
  // Null: not cached.
  std::shared_ptr<const Definition> FindCached(const std::string& key) EXCLUDES(mutex_);
  void Put(const std::string& key, std::shared_ptr<const Definition> definition) EXCLUDES(mutex_);

 private:
  store::Store& store_;
  JsonataEngine* const jsonata_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Definition>> machines_ GUARDED_BY(mutex_);
};

}  // namespace muster::states
