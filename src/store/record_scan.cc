#include "store/record_scan.h"

#include <utility>

namespace muster::store {

RecordScan::RecordScan(Store& store, std::string kind, std::string prefix, int page,
                       std::string after)
    : store_(store),
      kind_(std::move(kind)),
      prefix_(std::move(prefix)),
      page_(page),
      after_(std::move(after)) {}

Result<std::optional<Record>> RecordScan::Next() {
  if (next_ == records_.size() && !last_) {
    MUSTER_ASSIGN(records_, store_.Scan(kind_, prefix_, after_, page_));
    next_ = 0;
    last_ = records_.size() < static_cast<size_t>(page_);
    if (!records_.empty()) after_ = records_.back().key;
  }
  if (next_ == records_.size()) return std::optional<Record>();
  return std::optional<Record>(std::move(records_[next_++]));
}

}  // namespace muster::store
