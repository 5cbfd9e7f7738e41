#pragma once

#include <optional>
#include <string>
#include <utility>

#include "states/durable/flow_record.h"
#include "store/store.h"

namespace muster::states {

// The records of a flow's children, by the prefix of their keys, as store::RecordScan. Leaves out
// deeper branches, which share the prefix.
class ChildScan {
 public:
  ChildScan(store::Store& store, const std::string& prefix, std::string after = {})
      : prefix_bytes_(prefix.size()), scan_(store, kKind, prefix, kScanPage, std::move(after)) {}

  Result<std::optional<store::Record>> Next() {
    while (true) {
      MUSTER_ASSIGN(std::optional<store::Record> record, scan_.Next());
      if (!record || record->key.find('/', prefix_bytes_) == std::string::npos) return record;
    }
  }

 private:
  const size_t prefix_bytes_;
  store::RecordScan scan_;
};

}  // namespace muster::states
