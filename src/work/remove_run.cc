#include <algorithm>
#include <set>

#include "muster/store.h"
#include "muster/work.h"
#include "work/records.h"
#include "work/whole_run.h"

namespace muster::work {
namespace {

constexpr char kDamaged[] = "damaged";  // the incarnation of a run that could not be read

Error NoRun(const std::string& run) {
  return Error{Code::kNotFound, "no run '" + run + "' in this store",
               "'muster work status' lists the runs"};
}

Error InUse(const std::string& run, const std::string& by) {
  return Error{Code::kConflict, "run '" + run + "' is in use: " + by,
               "stop it and try again; if its process is gone, wait until the lease has ended, or "
               "add --force"};
}

// Holds something of a run until the lease ends: a worker that prepares it, or a redrive.
Status CheckLease(store::Store& store, const std::string& run, const char* kind,
                  const std::string& key, const std::string& does) {
  MUSTER_ASSIGN(const std::optional<store::Record> record, store.Get(kind, key));
  if (!record || record->owner.empty() || !record->due) return {};
  MUSTER_ASSIGN(const WallTime now, store.Now());
  if (*record->due <= now) return {};
  return InUse(run, store::NameOfOwner(record->owner) + " " + does);
}

// Removes the records of a run, but not its own.
class Removal {
 public:
  Removal(store::Store& store, const std::string& run, bool force)
      : store_(store), run_(run), force_(force) {}

  // Marked before it is looked at again: workers do not acquire items of a marked run. One that has
  // read the run just before may still do so, and loses the item at its first checkpoint.
  Result<RunBody> Begin() {
    MUSTER_TRY(CheckRunName(run_));
    if (!force_) MUSTER_TRY(CheckFree());
    MUSTER_TRY(Mark(true));
    if (force_) return body_;
    if (Status free = CheckFree(); !free) {
      // Without the mark the holder continues as if nothing had happened.
      if (!was_marked_) MUSTER_TRY(Mark(false));
      return free.error();
    }
    return body_;
  }

  Result<RunRemoval> Remove() {
    std::set<std::string> holders;
    MUSTER_ASSIGN(const RunTotals totals, EachItem(store_, run_, [&](const ItemInfo& item) {
                    if (IsHeld(item)) holders.insert(item.holder);
                  }));
    RunRemoval removal{
        .sink = body_.sink, .counts = totals.counts, .holders = {holders.begin(), holders.end()}};
    MUSTER_ASSIGN(removal.records, RemoveRecords(store_, run_, body_.incarnation));
    return removal;
  }

 private:
  Status CheckFree() {
    MUSTER_TRY(CheckLease(store_, run_, kPrepareKind, run_, "is creating its items"));
    MUSTER_TRY(CheckLease(store_, run_, kRedriveLeaseKind, RedriveLeaseKey(run_),
                          "redrives dead letters"));
    std::string held;
    MUSTER_TRY(EachItem(store_, run_, [&](const ItemInfo& item) {
      if (held.empty() && IsHeld(item)) held = item.holder + " holds item " + item.name;
    }));
    return held.empty() ? Status() : InUse(run_, held);
  }

  Status Mark(bool removing) {
    return store::Update(
        store_, kRunKind, run_,
        [&](std::optional<store::Record> run) -> Result<std::optional<store::Change>> {
          if (!run) return NoRun(run_);
          auto body = RunBody::FromJson(run->body);
          if (!body && body.error().code != Code::kCorrupt) return body.error();
          if (body) {
            body_ = *std::move(body);
          } else {
            // What cannot be read is removed like any other.
            body_ = RunBody();
            body_.incarnation = kDamaged;
          }
          was_marked_ = body_.removing;
          if (body_.removing == removing) return std::nullopt;
          body_.removing = removing;
          run->body = body_.ToJson();
          return store::Change::Put(*std::move(run), store::Due::Never());
        });
  }

  store::Store& store_;
  const std::string& run_;
  const bool force_;
  RunBody body_;
  bool was_marked_ = false;
};

// Puts the fresh run in place of the marked one.
Status Replace(store::Store& store, const std::string& run, const RunBody& fresh,
               const std::string& incarnation) {
  return store::Update(
      store, kRunKind, run,
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
        if (!stored) return NoRun(run);
        MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(stored->body));
        if (body.incarnation == fresh.incarnation) return std::nullopt;
        if (body.incarnation != incarnation || !body.removing) {
          return Error{Code::kConflict, "run '" + run + "' was changed by another process"};
        }
        stored->body = fresh.ToJson();
        return store::Change::Put(*std::move(stored), store::Due::Never());
      });
}

}  // namespace

Result<RunRemoval> DeleteRun(store::Store& store, const std::string& run, bool force) {
  Removal removal(store, run, force);
  MUSTER_ASSIGN(const RunBody body, removal.Begin());
  MUSTER_ASSIGN(RunRemoval removed, removal.Remove());
  MUSTER_TRY(RemoveRun(store, run, body.incarnation));
  ++removed.records;
  return removed;
}

Result<RunRemoval> ResetRun(store::Store& store, const std::string& run, bool force, Env& env) {
  const auto before = ReadRun(store, run);
  const bool is_damaged =
      before ? before->incarnation == kDamaged : before.error().code == Code::kCorrupt;
  if (is_damaged) {
    return Error{Code::kCorrupt, "the record of run '" + run + "' cannot be read",
                 "remove it with 'muster work delete'"};
  }
  MUSTER_TRY(before);
  Removal removal(store, run, force);
  MUSTER_ASSIGN(const RunBody body, removal.Begin());
  MUSTER_ASSIGN(RunRemoval removed, removal.Remove());
  MUSTER_ASSIGN(const int64_t start_ms, NextStartMs(store));
  RunBody fresh;
  fresh.incarnation = env.NewId();
  fresh.source = body.source;
  fresh.sink = body.sink;
  fresh.transforms = body.transforms;
  fresh.selection = body.selection;
  fresh.max_failures = body.max_failures;
  fresh.created_ms = start_ms;
  fresh.since_ms = start_ms;
  fresh.begun_ms = start_ms;
  MUSTER_TRY(BeginPreparation(store, run, body.incarnation));
  MUSTER_TRY(Replace(store, run, fresh, body.incarnation));
  return removed;
}

}  // namespace muster::work
