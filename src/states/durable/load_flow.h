#pragma once

#include <string>

#include "muster/store.h"
#include "states/durable/flow_record.h"

namespace muster::states {

// The record of an execution or branch. kNotFound: no such record.
Result<store::Record> LoadRecord(store::Store& store, const std::string& key);
Result<FlowRecord> LoadFlow(store::Store& store, const std::string& key);

Error NoExecution(const std::string& name);
Error HasEnded(const FlowRecord& record);

}  // namespace muster::states
