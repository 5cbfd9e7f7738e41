#include "states/durable/load_flow.h"

#include "muster/states.h"

namespace muster::states {

Result<store::Record> LoadRecord(store::Store& store, const std::string& key) {
  MUSTER_ASSIGN(auto stored, store.Get(kKind, key));
  if (stored) return *std::move(stored);
  return NoExecution(key);
}

Result<FlowRecord> LoadFlow(store::Store& store, const std::string& key) {
  MUSTER_ASSIGN(store::Record stored, LoadRecord(store, key));
  return FlowCodec(store).Decode(std::move(stored));
}

Error NoExecution(const std::string& name) {
  return {Code::kNotFound, "no execution '" + name + "'",
          "'muster states list' shows the existing ones"};
}

Error HasEnded(const FlowRecord& record) {
  return {Code::kConflict, "the execution '" + record.execution +
                               "' has ended: " + std::string(NameOf(record.flow.status))};
}

}  // namespace muster::states
