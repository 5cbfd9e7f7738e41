#include "work/leased_item.h"

#include <algorithm>

#include "core/backoff.h"
#include "core/planted_bug.h"
#include "work/circuit.h"
#include "work/records.h"

namespace muster::work {
namespace {

// No more parts are split off from one item: its record must stay small.
constexpr size_t kMostSuccessors = 200;

}  // namespace

LeasedItem::LeasedItem(store::Lease lease, ItemBody body, pipeline::Fence fence)
    : name_(NameOf(body.partition)),
      lease_(std::move(lease)),
      body_(std::move(body)),
      fence_(std::move(fence)) {}

Status LeasedItem::FinishSuccessors() { return CreateSuccessors(std::nullopt); }

Status LeasedItem::CreateSuccessors(std::optional<int64_t> documents) {
  std::vector<pipeline::Partition> parts = body_.Successors();
  if (body_.created == parts.size()) return {};
  parts.back().documents = documents;
  std::vector<store::Change> changes;
  for (size_t i = body_.created; i < parts.size(); ++i) {
    changes.push_back(NewItem(lease_.queue(), ItemBody::Of(parts[i], name_, fence_.rank)));
  }
  // A conflict means that it already exists, which is just as good.
  const auto written =
      RetryBefore(lease_.deadline(), lease_.env(), [&] { return lease_.store().Write(changes); });
  if (!written) return written.error().Within("successor of '" + name_ + "'");
  body_.created = parts.size();
  return {};
}

Status LeasedItem::Checkpoint(const pipeline::Progress& progress, std::optional<double> fraction,
                              bool kept) {
  body_.progress = progress;
  body_.fraction = fraction;
  body_.kept = kept;
  body_.error.clear();
  body_.ForgetFailures();
  return lease_.Renew(body_.ToJson());
}

Status LeasedItem::ShowWait(const std::string& what) {
  body_.error = what;
  store::Record next = lease_.record();
  next.body = body_.ToJson();
  return lease_.Commit(std::move(next), store::Due::Unchanged());
}

Status LeasedItem::Split(const pipeline::Progress& progress, std::optional<double> share) {
  std::optional<int64_t> documents;
  if (body_.partition.documents && share) {
    documents = static_cast<int64_t>(static_cast<double>(*body_.partition.documents) * *share);
    *body_.partition.documents -= *documents;
  }
  body_.progress = progress;
  body_.reported = 0;
  if (progress.former_ends.size() >= kMostSuccessors) body_.whole = true;
  MUSTER_TRY(lease_.Renew(body_.ToJson()));
  return CreateSuccessors(documents);
}

Status LeasedItem::HandOver(const pipeline::Progress& progress) {
  const pipeline::Progress ended = progress.CutAt(progress.position);
  if (PLANTED_BUG(complete_before_successor)) {
    MUSTER_TRY(Complete(ended));
    body_.progress = ended;
    return CreateSuccessors(std::nullopt);
  }
  return Split(ended, 1.0 - body_.fraction.value_or(0));
}

Status LeasedItem::Complete(const pipeline::Progress& progress) {
  body_.state = ItemBody::State::kDone;
  body_.progress.position = progress.position;
  body_.progress.counts = progress.counts;
  body_.fraction.reset();
  body_.error.clear();
  body_.until_ms = lease_.env().WallNow().time_since_epoch().count();
  return lease_.End(body_.ToJson());
}

Status LeasedItem::Postpone() {
  constexpr Backoff::Pauses kWaits{.first = milliseconds(500), .longest = milliseconds(15'000)};
  const milliseconds wait = kWaits.After(++body_.waits);
  body_.reported = 0;
  return lease_.GiveBack(body_.ToJson(), wait, store::Lease::Attempts::kAnew);
}

Status LeasedItem::Fail(const Error& error, milliseconds delay,
                        const std::optional<pipeline::Progress>& progress, bool blame) {
  std::vector<std::string>& failed = body_.failed;
  // The message of a failed dead-letter file names it already.
  const bool is_named = error.party == Party::kNone || error.party == Party::kDeadLetters;
  body_.error = (is_named ? error : error.Within(PartyName(error.party))).ToString();
  if (progress) body_.progress = *progress;
  if (progress) body_.ForgetFailures();
  const std::string worker = store::NameOfOwner(lease_.owner());
  if (failed.size() < 2 && std::find(failed.begin(), failed.end(), worker) == failed.end()) {
    failed.push_back(worker);
  }
  const bool outside = IsOutage(error) && !PLANTED_BUG(outages_are_the_items_fault);
  if (blame && outside) ++body_.failures;
  // A holder that lives to report an outage proves that the item does not kill its holders: earlier
  // claims that ended silently, such as leases lost to a jump of the store's clock, are not the
  // item's fault.
  const bool counts = blame && !outside && !progress;
  body_.reported = counts ? lease_.attempt() : 0;
  return lease_.GiveBack(body_.ToJson(), delay,
                         counts ? store::Lease::Attempts::kOneMore : store::Lease::Attempts::kAnew);
}

bool LeasedItem::FailedElsewhere() const {
  return std::any_of(body_.failed.begin(), body_.failed.end(),
                     [self = store::NameOfOwner(lease_.owner())](const std::string& worker) {
                       return worker != self;
                     });
}

Status LeasedItem::Quarantine(const std::string& error) {
  body_.state = ItemBody::State::kQuarantined;
  body_.error = error;
  return lease_.Park(body_.ToJson());
}

}  // namespace muster::work
