#include "sim/faulty_store.h"

#include <algorithm>

#include "store/store.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kLongestReadOnly = std::chrono::seconds(60);
constexpr nanoseconds kLongestThrottle = std::chrono::seconds(15);
constexpr milliseconds kLargestJump = std::chrono::minutes(10);
constexpr nanoseconds kJumpEvery = std::chrono::seconds(20);
constexpr nanoseconds kShortly = std::chrono::seconds(1);
constexpr nanoseconds kLongestUnsynced = std::chrono::milliseconds(200);

}  // namespace

// The store's clock, rarely in step with any other.
class FaultyStore::Clock final : public Env {
 public:
  explicit Clock(Simulation& sim) : sim_(sim) {}

  WallTime WallNow() override {
    JumpNowAndThen();
    return WallTime(std::chrono::floor<milliseconds>(sim_.now()) + offset_);
  }
  MonoTime MonoNow() override { return MonoTime(sim_.now()); }
  bool Sleep(nanoseconds /*duration*/, std::stop_token /*stop*/) override { return true; }
  uint64_t Random() override { return sim_.random().Next(); }
  nanoseconds ahead() const { return ahead_; }

 private:
  void JumpNowAndThen() {
    if (sim_.now() < next_jump_) return;
    next_jump_ = sim_.now() + sim_.random().UpTo(kJumpEvery);
    if (!sim_.Fires(Fault::kClockJump, 8)) return;
    const milliseconds jump = sim_.random().UpTo(kLargestJump);
    const bool back = sim_.random().OneIn(2);
    offset_ += back ? -jump : jump;
    if (!back) ahead_ += jump;
    sim_.Sometimes(back ? "5 the store's clock jumps back" : "6 the store's clock jumps forward");
  }

  Simulation& sim_;
  milliseconds offset_ = std::chrono::hours(24 * 365);
  nanoseconds ahead_{0};
  nanoseconds next_jump_{0};
};

FaultyStore::FaultyStore(Simulation& sim, StoreObserver observer)
    : sim_(sim),
      observer_(std::move(observer)),
      wire_(sim),
      clock_(std::make_unique<Clock>(sim)),
      truth_(store::NewMemoryStore(*clock_)) {}

FaultyStore::~FaultyStore() = default;

nanoseconds FaultyStore::JumpedAhead() const { return clock_->ahead(); }

Result<std::optional<store::Record>> FaultyStore::Get(std::string_view kind, std::string_view key) {
  MUSTER_TRY(Throttled("get"));
  return wire_.Call<std::optional<store::Record>>(
      "get " + std::string(key), false,
      [this, kind = std::string(kind), key = std::string(key)](bool) {
        auto stored = truth_->Get(kind, key);
        if (stored && observer_.reads) observer_.reads(*stored);
        return stored;
      });
}

Result<std::vector<store::Record>> FaultyStore::Scan(std::string_view kind, std::string_view prefix,
                                                     std::string_view after, int limit) {
  return wire_.Call<std::vector<store::Record>>(
      "scan", false,
      [this, kind = std::string(kind), prefix = std::string(prefix), after = std::string(after),
       limit](bool) { return truth_->Scan(kind, prefix, after, limit); });
}

Result<std::vector<store::Written>> FaultyStore::Write(std::span<const store::Change> changes) {
  std::string what = "write";
  for (const store::Change& change : changes) {
    what += " " + change.record.key + " " + change.record.body;
    if (observer_.sends) observer_.sends(change);
  }
  MUSTER_TRY(RefuseWrites(what));
  MUSTER_TRY(Throttled(what));
  MaybeGoBack();
  return wire_.Call<std::vector<store::Written>>(
      what, true,
      [this, server = server_,
       changes = std::vector<store::Change>(changes.begin(), changes.end())](
          bool late) -> Result<std::vector<store::Written>> {
        if (server != server_) return Error{Code::kUnavailable, "gone"};
        MaybeLosePower(std::ranges::all_of(changes, &store::Change::deferred));
        if (harsher_ && changes.size() > 1 && sim_.Fires(Fault::kTornWrite, 10)) {
          static_cast<void>(Apply({changes.data(), changes.size() / 2}, late));
          sim_.Sometimes("24 only some changes of a request survive");
          return Error{Code::kUnknownOutcome, "torn"};
        }
        return Apply(changes, late);
      });
}

Result<std::vector<store::Written>> FaultyStore::Apply(std::span<const store::Change> changes,
                                                       bool late) {
  std::vector<std::optional<store::Record>> before;
  const auto stored = [this](const store::Record& record) {
    return truth_->Get(record.kind, record.key).value_or(std::nullopt);
  };
  if (observer_.changed) {
    for (const store::Change& change : changes) before.push_back(stored(change.record));
  }
  auto written = truth_->Write(changes);
  if (!written) return written;
  for (size_t i = 0; i < changes.size(); ++i) {
    const store::Record& record = changes[i].record;
    const bool applied = (*written)[i].applied;
    sim_.Note("  " + record.key + (applied ? ": written" : ": conflict"));
    if (applied && changes[i].due.HasCome()) due_at_once_.emplace(record.kind, record.key);
    if (applied && !changes[i].due.HasCome()) due_at_once_.erase({record.kind, record.key});
    if (observer_.changed) observer_.changed(changes[i], before[i], stored(record), late);
  }
  return written;
}

Result<std::vector<store::Record>> FaultyStore::Claim(const store::ClaimRequest& wanted) {
  MUSTER_TRY(RefuseWrites("claim"));
  MUSTER_TRY(Throttled("claim"));
  MaybeGoBack();
  return wire_.Call<std::vector<store::Record>>(
      "claim", true,
      [this, server = server_, wanted](bool late) -> Result<std::vector<store::Record>> {
        if (server != server_) return Error{Code::kUnavailable, "gone"};
        MaybeLosePower(wanted.deferred);
        store::ClaimRequest request = wanted;
        PickByOldView(request);
        std::vector<store::Record> before;
        if (observer_.claimed) before = store::ClaimableIn(*truth_, request);
        auto taken = truth_->Claim(request);
        if (!taken) return taken;
        if (taken->empty()) CheckNothingIsDue(request);
        for (const store::Record& record : *taken) {
          due_at_once_.erase({record.kind, record.key});
          sim_.Note("  " + record.key + ": claimed by " + record.owner + ", epoch " +
                    std::to_string(record.epoch));
        }
        if (observer_.claimed) observer_.claimed(request, before, *taken, late);
        return taken;
      });
}

// An empty claim: no record may be waiting that was written as due at once, whatever the clock
// says.
void FaultyStore::CheckNothingIsDue(const store::ClaimRequest& request) {
  for (const auto& [kind, key] : due_at_once_) {
    if (kind != request.kind || (!request.key.empty() && key != request.key)) continue;
    const auto stored = truth_->Get(kind, key).value();
    if (stored && stored->queue == request.queue)
      sim_.Violate("V", key + " is due at once, but cannot be claimed");
  }
}

// Sometimes candidates are chosen from an outdated view of the store.
void FaultyStore::PickByOldView(store::ClaimRequest& request) {
  if (!harsher_ || request.repeat) return;
  const auto any = truth_->Scan(request.kind, "", "", 1);
  if (!any || any->empty() || !sim_.Fires(Fault::kStaleRead, 30)) return;
  const auto all = truth_->Scan(request.kind, "", "", store::kMaxBatch).value();
  const store::Record& picked = all[sim_.random().Next() % all.size()];
  request.key = picked.key;
  if (!picked.owner.empty()) sim_.Sometimes("26 a stale read picks an item that is taken");
}

Result<WallTime> FaultyStore::Now() {
  return wire_.Call<WallTime>("now", false, [this](bool) { return truth_->Now(); });
}

// Nothing may rely on wake-ups, so there are none.
void FaultyStore::Wait(std::string_view /*kind*/, milliseconds timeout, std::stop_token stop) {
  sim_.Sleep(sim_.random().UpTo<int64_t, std::nano>(timeout), stop);
}

Status FaultyStore::Throttled(const std::string& what) {
  if (harsher_ && sim_.Fires(Fault::kThrottle, 800)) {
    throttled_until_ = sim_.now() + sim_.random().UpTo(kLongestThrottle);
    sim_.Lasts(throttled_until_ - sim_.now());
  }
  if (!sim_.faults_on() || sim_.now() >= throttled_until_ || sim_.random().OneIn(2)) return {};
  sim_.Pass(std::chrono::milliseconds(1));
  sim_.Note(what + ": throttled");
  sim_.Sometimes("28 the store throttles");
  return Error{Code::kUnavailable, "too many requests"};
}

// A lagging replica takes over, or a backup is restored.
void FaultyStore::MaybeGoBack() {
  if (may_lose_.count() == 0) return;
  if (!backup_ || sim_.random().OneIn(8)) backup_ = store::CopyMemoryStore(*truth_);
  if (!goes_back_at_any_write_ || !sim_.Fires(Fault::kGoBack, 40)) return;
  GoBackAfter(sim_.random().UpTo(may_lose_), store::CopyMemoryStore(*truth_));
}

bool FaultyStore::GoBackBefore(nanoseconds time) {
  if (may_lose_.count() == 0 || !backup_ || !sim_.Fires(Fault::kGoBack, 1)) return false;
  GoBackAfter(time - std::min(time, sim_.random().UpTo(kShortly)), std::move(backup_));
  return true;
}

void FaultyStore::GoBackAfter(nanoseconds delay, std::unique_ptr<store::Store> backup) {
  may_lose_ = nanoseconds(0);
  sim_.After(delay,
             [this, backup = std::make_shared<std::unique_ptr<store::Store>>(std::move(backup))] {
               sim_.Note("the store goes back");
               RestoreBackup(std::move(*backup));
             });
}

void FaultyStore::RestoreBackup(std::unique_ptr<store::Store> backup) {
  truth_ = std::move(backup);
  due_at_once_.clear();
  ++server_;
  if (observer_.went_back) observer_.went_back();
}

// Called before every write. A power failure soon after a deferred write undoes it and everything
// after it, unless the disk was synced in between.
void FaultyStore::MaybeLosePower(bool deferred) {
  if (!may_lose_power_) return;
  if (!deferred) unsynced_since_.reset();
  if (!deferred || !sim_.Fires(Fault::kPowerLoss, 60)) return;
  unsynced_since_ =
      std::make_shared<std::unique_ptr<store::Store>>(store::CopyMemoryStore(*truth_));
  sim_.After(sim_.random().UpTo(kLongestUnsynced), [this, backup = unsynced_since_] {
    sim_.CutPower();
    const bool lost = unsynced_since_ == backup;
    unsynced_since_.reset();
    if (!lost) return;
    sim_.Sometimes("24 a loss of power takes back what the disk had not been waited for");
    RestoreBackup(std::move(*backup));
  });
}

// A full or read-only disk reports it: nothing is applied, and the sender knows.
Status FaultyStore::RefuseWrites(const std::string& what) {
  if (sim_.Fires(Fault::kReadOnly, 1500)) {
    read_only_until_ = sim_.now() + sim_.random().UpTo(kLongestReadOnly);
    sim_.Lasts(read_only_until_ - sim_.now());
  }
  if (!sim_.faults_on() || sim_.now() >= read_only_until_) return {};
  sim_.Pass(std::chrono::milliseconds(1));
  sim_.Note(what + ": the store takes no writes");
  sim_.Sometimes("20 the store takes no writes");
  if (sim_.random().OneIn(2)) return Error{Code::kReadOnly, "read-only"};
  return Error{Code::kFull, "disk full"};
}

}  // namespace muster::sim
