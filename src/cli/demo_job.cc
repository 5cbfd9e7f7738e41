#include "cli/demo_job.h"

#include <algorithm>
#include <cstdio>

#include "muster/store.h"
#include "work/worker.h"

namespace muster::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBusyTimeout{5'000};
constexpr int64_t kBatch = 25;
constexpr int64_t kCheckpointEvery = 4;  // batches
// A lease short enough that nobody waits long to see one end, and a pace that leaves time to watch.
constexpr LeaseTerms kTerms{.lease = milliseconds(1'500), .max_lease = milliseconds(6'000)};
constexpr milliseconds kPause{30};

int64_t PositionOf(const ItemState& state) {
  return state.progress == "null" ? 0 : std::stoll(state.progress);
}

// Copies one item from where the target's watermark is.
class Copier {
 public:
  Copier(DemoTarget& target, Env& env, const std::function<void(const std::string&)>& say)
      : target_(target), env_(env), say_(say) {}

  Result<std::string> Copy(Lease& lease, std::stop_token stop) {
    MUSTER_ASSIGN(int64_t position, target_.OpenFence(lease.key(), lease.epoch()));
    say_(lease.epoch() == 1
             ? "takes " + lease.key()
             : "takes over " + lease.key() + " at document " + std::to_string(position) +
                   ", epoch " + std::to_string(lease.epoch()));
    for (int64_t batch = 1; position < kDemoDocuments; ++batch) {
      if (stop.stop_requested()) {
        if (position > PositionOf(lease.state())) {
          MUSTER_TRY(lease.Checkpoint(std::to_string(position)));
        }
        return Error{Code::kCancelled, "asked to stop"};
      }
      const int64_t to = std::min(position + kBatch, kDemoDocuments);
      if (auto appended = target_.Append(lease.key(), lease.epoch(), position, to); !appended) {
        if (appended.error().code == Code::kLeaseLost) {
          say_("writes to " + lease.key() + " too late: the target refuses epoch " +
               std::to_string(lease.epoch()));
        }
        return appended.error();
      }
      position = to;
      if (batch % kCheckpointEvery == 0) MUSTER_TRY(lease.Checkpoint(std::to_string(position)));
      env_.Sleep(kPause, stop);
    }
    return std::to_string(position);
  }

 private:
  DemoTarget& target_;
  Env& env_;
  const std::function<void(const std::string&)>& say_;
};

}  // namespace

std::vector<std::string> DemoItems() {
  std::vector<std::string> items;
  for (int shard = 0; shard < kDemoShards; ++shard) {
    items.push_back("orders__" + std::to_string(shard) + "__0");
  }
  return items;
}

std::string DemoDocument(const std::string& item, int64_t number) {
  char body[160];
  std::snprintf(body, sizeof body, R"({"id":"%s/%lld","customer":"c%03lld","total":%lld.%02lld})",
                item.c_str(), static_cast<long long>(number),
                static_cast<long long>(number * 37 % 1000),
                static_cast<long long>(number * 13 % 500), static_cast<long long>(number % 100));
  return body;
}

Result<std::unique_ptr<DemoTarget>> DemoTarget::Open(const std::string& path) {
  MUSTER_ASSIGN(auto db, SqliteDb::Open(path, SqliteDb::Mode::kCreate, kBusyTimeout));
  MUSTER_TRY(db->Execute(R"(
    CREATE TABLE IF NOT EXISTS documents (
      item TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS fences (
      item TEXT PRIMARY KEY, epoch INTEGER NOT NULL, watermark INTEGER NOT NULL) STRICT)"));
  return std::unique_ptr<DemoTarget>(new DemoTarget(std::move(db)));
}

Result<int64_t> DemoTarget::OpenFence(const std::string& item, int64_t epoch) {
  MUSTER_ASSIGN(auto raise,
                db_->Prepare("INSERT INTO fences VALUES (?1, ?2, 0) ON CONFLICT (item) DO"
                             " UPDATE SET epoch = ?2 WHERE epoch <= ?2"
                             " RETURNING watermark"));
  MUSTER_ASSIGN(const bool raised, raise.Bind(item, epoch).Step());
  if (!raised) return Error{Code::kLeaseLost, "the target knows a newer holder of " + item};
  const int64_t watermark = raise.Int(0);
  raise.Reset();
  return watermark;
}

Status DemoTarget::Append(const std::string& item, int64_t epoch, int64_t from, int64_t to) {
  MUSTER_ASSIGN(SqliteTransaction transaction, SqliteTransaction::Begin(*db_));
  MUSTER_ASSIGN(auto advance, db_->Prepare("UPDATE fences SET watermark = ?4"
                                           " WHERE item = ?1 AND epoch = ?2 AND watermark = ?3"));
  MUSTER_TRY(advance.Bind(item, epoch, from, to).Run());
  if (db_->Changes() != 1) {
    return Error{Code::kLeaseLost, "the target refuses a write of epoch " + std::to_string(epoch)};
  }
  MUSTER_ASSIGN(auto insert, db_->Prepare("INSERT INTO documents VALUES (?, ?, ?)"));
  for (int64_t number = from; number < to; ++number) {
    const std::string body = DemoDocument(item, number);
    MUSTER_TRY(insert.Bind(item, number, body).Run());
  }
  return transaction.Commit();
}

Result<DemoTarget::Comparison> DemoTarget::Compare() {
  Comparison comparison;
  MUSTER_ASSIGN(comparison.found, db_->QueryInt("SELECT count(*) FROM documents"));
  MUSTER_ASSIGN(auto find,
                db_->Prepare("SELECT body FROM documents WHERE item = ? ORDER BY number"));
  for (const std::string& item : DemoItems()) {
    find.Bind(item);
    int64_t right = 0;
    for (;;) {
      MUSTER_ASSIGN(const bool row, find.Step());
      if (!row) break;
      if (find.Text(0) == DemoDocument(item, right)) {
        ++right;
      } else {
        ++comparison.wrong;
      }
    }
    find.Reset();
    comparison.expected += kDemoDocuments;
    comparison.missing += kDemoDocuments - right;
  }
  return comparison;
}

Status RunDemoWorker(const DemoFolder& folder, const std::string& name, Env& env,
                     const std::function<void(const std::string& event)>& say,
                     std::stop_token stop) {
  MUSTER_ASSIGN(const auto store, OpenStore(folder.StoreUrl(), env));
  MUSTER_ASSIGN(const auto target, DemoTarget::Open(folder.TargetPath()));
  Copier copier(*target, env, say);
  const WorkerOptions options{.kind = kDemoKind,
                              .queue = kDemoQueue,
                              .owner = name,
                              .terms = kTerms,
                              .idle_wait = milliseconds(100)};
  const auto handler = [&](Lease& lease, std::stop_token token) {
    return copier.Copy(lease, token);
  };
  const auto observer = [&](const Lease& lease, ItemOutcome outcome) {
    if (outcome == ItemOutcome::kLost) {
      say("no longer holds " + lease.key());
    }
    if (outcome == ItemOutcome::kReleased) say("gives " + lease.key() + " back and leaves");
  };
  return RunWorker(*store, env, options, handler, observer, stop);
}

}  // namespace muster::cli
