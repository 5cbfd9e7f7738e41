#include "work/error_budget.h"

#include <algorithm>
#include <chrono>

#include "core/log.h"
#include "core/planted_bug.h"

namespace muster::work {
namespace {

// Counting takes at most one part in so many of the time.
constexpr int kPauses = 20;

Error Gone(const std::string& run) {
  return Error{Code::kIncompatible, "run '" + run + "' is gone from the store", kGoneHint};
}

// Only what a limit is about.
void Subtract(pipeline::Counts& from, const pipeline::Counts& these) {
  from.read -= these.read;
  from.added -= these.added;
  from.failed -= these.failed;
}

// Each document that a script made of another one may fail by itself.
int64_t DocumentsIn(const pipeline::Counts& counts) { return counts.read + counts.added; }

pipeline::Counts CountsOf(int64_t read, int64_t failed) { return {.read = read, .failed = failed}; }

std::optional<StopBody> Exceeded(const FailureLimit& limit, const pipeline::Counts& counts,
                                 const std::vector<FailureReason>& reasons) {
  if (!limit.IsExceeded(counts)) return std::nullopt;
  return StopBody{.read = DocumentsIn(counts),
                  .failed = counts.failed,
                  .most = reasons.empty() ? FailureReason() : reasons.front()};
}

}  // namespace

void FailureEstimate::Add(const pipeline::Counts& batch) {
  const MutexLock lock(mutex_);
  unsaved_ += batch;
}

void FailureEstimate::Saved(const pipeline::Counts& these) {
  const MutexLock lock(mutex_);
  Subtract(unsaved_, these);
  uncounted_ += these;
}

void FailureEstimate::Dropped(const pipeline::Counts& these) {
  const MutexLock lock(mutex_);
  Subtract(unsaved_, these);
}

pipeline::Counts FailureEstimate::Uncounted() const {
  const MutexLock lock(mutex_);
  return uncounted_;
}

void FailureEstimate::Counted(const pipeline::Counts& total, const pipeline::Counts& uncounted) {
  const MutexLock lock(mutex_);
  counted_ = total;
  Subtract(uncounted_, uncounted);
}

pipeline::Counts FailureEstimate::Total() const {
  const MutexLock lock(mutex_);
  pipeline::Counts total = counted_;
  total += uncounted_;
  total += unsaved_;
  return total;
}

// Without it the worker suspects too late, and the next count puts that right.
void ErrorBudget::Begin() {
  static_cast<void>(ReadBody());
  const auto record = store_.Get(kBudgetKind, run_);
  if (!record || !*record) return;
  const auto body = BudgetBody::FromJson((*record)->body);
  if (body) estimate_.Counted(CountsOf(body->read, body->failed), {});
}

Result<RunBody> ErrorBudget::ReadBody() {
  MUSTER_ASSIGN(const std::optional<store::Record> run, store_.Get(kRunKind, run_));
  if (!run) return Gone(run_);
  MUSTER_ASSIGN(RunBody body, RunBody::FromJson(run->body));
  limit_ = body.max_failures;
  return body;
}

std::optional<store::Lease> ErrorBudget::ClaimCount(const std::stop_token& stop) {
  auto claimed = store::Lease::Claim(store_,
                                     {.kind = kBudgetKind,
                                      .queue = run_,
                                      .key = run_,
                                      .owner = worker_,
                                      .terms = {.lease = lease_, .max_lease = lease_}},
                                     env_, stop);
  if (!claimed || claimed->empty()) return std::nullopt;
  return std::move(claimed->front());
}

void ErrorBudget::Count(store::Lease claimed) {
  const MonoTime start = env_.MonoNow();
  auto body = BudgetBody::FromJson(claimed.body());
  const auto counted = body ? CountNow(*body) : Result<RunBody>(body.error());
  if (!counted) {
    Log(Level::kWarning, "could not count the failed documents; counting later",
        {{"run", run_}, {"error", counted.error().ToString()}});
  }
  const auto took = std::chrono::duration_cast<milliseconds>(env_.MonoNow() - start);
  const std::string text = body ? body->ToJson() : claimed.body();
  static_cast<void>(claimed.GiveBack(text, kPauses * took, store::Lease::Attempts::kAnew));
}

// Returns the run as it is stored afterwards.
Result<RunBody> ErrorBudget::CountNow(BudgetBody& counted) {
  const pipeline::Counts uncounted = estimate_.Uncounted();
  // Before the items: what is counted must not stop another start of the run.
  MUSTER_ASSIGN(const RunBody before, ReadBody());
  MUSTER_ASSIGN(const RunTotals totals, ReadTotals(store_, run_));
  pipeline::Counts sum = totals.counts;
  sum += CountsOf(counted.earlier_read, counted.earlier_failed);
  counted.read = DocumentsIn(sum);
  counted.failed = sum.failed;
  estimate_.Counted(sum, uncounted);
  RunBody body;
  MUSTER_TRY(
      store::Update(store_, kRunKind, run_,
                    [&](std::optional<store::Record> run) -> Result<std::optional<store::Change>> {
                      if (!run) return Gone(run_);
                      MUSTER_ASSIGN(body, RunBody::FromJson(run->body));
                      if (body.stopped || body.incarnation != before.incarnation)
                        return std::nullopt;
                      body.stopped = Exceeded(body.max_failures, sum, totals.reasons);
                      if (!body.stopped) return std::nullopt;
                      run->body = body.ToJson();
                      return store::Change::Put(*std::move(run), store::Due::Never());
                    }));
  limit_ = body.max_failures;
  return body;
}

Status ErrorBudget::CheckGoesOn() {
  auto body = ReadBody();
  // What has become of the run shows when the next item is acquired.
  if (!body && !IsTransient(body.error().code)) return {};
  if (!body) return body.error();
  if (PLANTED_BUG(stopped_runs_go_on)) return {};
  if (work::CheckGoesOn(run_, *body)) return {};
  return Error{Code::kCancelled, body->removing ? kRunIsRemoved : kRunIsStopped};
}

Status ErrorBudget::CountAll() {
  MUSTER_ASSIGN(const RunBody before, ReadBody());
  MUSTER_TRY(work::CheckGoesOn(run_, before));
  if (before.max_failures == FailureLimit{.percent = 100}) return {};
  MUSTER_ASSIGN(const std::optional<store::Record> record, store_.Get(kBudgetKind, run_));
  BudgetBody counted;
  if (record) {
    MUSTER_ASSIGN(counted, BudgetBody::FromJson(record->body));
  }
  MUSTER_ASSIGN(const RunBody after, CountNow(counted));
  if (PLANTED_BUG(stopped_runs_are_finished)) return {};
  return work::CheckGoesOn(run_, after);
}

Status BeginBudget(store::Store& store, const std::string& run, const pipeline::Counts& earlier) {
  const BudgetBody body{.read = DocumentsIn(earlier),
                        .failed = earlier.failed,
                        .earlier_read = DocumentsIn(earlier),
                        .earlier_failed = earlier.failed};
  // A conflict means that it already exists, which is just as good.
  const store::Change change = store::Change::Put(
      store::Record{.kind = kBudgetKind, .queue = run, .key = run, .body = body.ToJson()},
      store::Due::AtOnce());
  MUSTER_TRY(store.Write({&change, 1}));
  return {};
}

Result<bool> SetLimit(store::Store& store, const std::string& run,
                      const std::optional<FailureLimit>& limit, RunBody& body) {
  const bool differs = limit && *limit != body.max_failures;
  if (differs) body.max_failures = *limit;
  if (!body.stopped) return differs;
  MUSTER_ASSIGN(const RunTotals totals, ReadTotals(store, run));
  body.stopped = Exceeded(body.max_failures, totals.counts, totals.reasons);
  return differs || !body.stopped;
}

}  // namespace muster::work
