#include "sim/fenced_sink.h"

namespace muster::sim {

Result<int64_t> FencedSink::Open(const std::string& item, int64_t epoch) {
  return wire_.Call<int64_t>("sink: open " + item + ", epoch " + std::to_string(epoch), true,
                             [this, item, epoch](bool late) -> Result<int64_t> {
                               observer_(item, epoch, late);
                               Item& target = items_[item];
                               if (epoch < target.epoch) return Error{Code::kLeaseLost, "fenced"};
                               target.epoch = epoch;
                               return static_cast<int64_t>(target.rows.size());
                             });
}

Status FencedSink::Append(const std::string& item, int64_t epoch, int64_t from, int64_t to) {
  return wire_.Call<void>("sink: rows " + std::to_string(from) + ".." + std::to_string(to) +
                              " of " + item + ", epoch " + std::to_string(epoch),
                          true, [this, item, epoch, from, to](bool late) -> Status {
                            observer_(item, epoch, late);
                            Item& target = items_[item];
                            if (epoch < target.epoch) return Error{Code::kLeaseLost, "fenced"};
                            if (from != static_cast<int64_t>(target.rows.size())) {
                              return Error{Code::kConflict, "the rows do not end here"};
                            }
                            for (int64_t row = from; row < to; ++row) target.rows.push_back(row);
                            return {};
                          });
}

}  // namespace muster::sim
