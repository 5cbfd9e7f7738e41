#pragma once

#include <string>

#include "muster/store.h"
#include "states/durable/machine_cache.h"

namespace muster::states {

// Resumes an execution that has not succeeded, as States::Redrive does.
class Redrive {
 public:
  Redrive(store::Store& store, MachineCache& machines)
      : store_(store), machines_(machines), codec_(store) {}

  Status Run(const std::string& name);

 private:
  Result<std::optional<store::Change>> ChangeOf(const std::string& name,
                                                std::optional<store::Record> stored);
  Status Reset(FlowRecord& record, const Definition& definition);
  Status ResetChildren(FlowRecord& record, const Definition& definition);
  Status ResetChild(const std::string& key, const Definition& definition);
  Result<std::optional<store::Change>> Released(FlowRecord& record);

  store::Store& store_;
  MachineCache& machines_;
  const FlowCodec codec_;
};

}  // namespace muster::states
