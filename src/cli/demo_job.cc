#include "cli/demo_job.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "muster/store.h"
#include "muster/work.h"

namespace muster::cli {
namespace {

using std::chrono::milliseconds;

using Say = std::function<void(const std::string& event)>;

constexpr milliseconds kBusyTimeout{5'000};
constexpr char kCollection[] = "orders";
// A lease short enough to watch one expire, and a pace slow enough to follow.
constexpr work::WorkTerms kTerms{.lease = milliseconds(1'500),
                                 .max_lease = milliseconds(6'000),
                                 .checkpoint_interval = milliseconds(100),
                                 .idle_wait = milliseconds(100)};
constexpr pipeline::BatchLimits kLimits{.max_docs = 25};
constexpr milliseconds kPause{30};

int64_t NumberOf(const std::string& position) {
  int64_t number = 0;
  std::from_chars(position.data(), position.data() + position.size(), number);
  return number;
}

// Generates the documents of one shard.
class DemoReader final : public pipeline::Reader {
 public:
  DemoReader(int shard, int64_t next) : shard_(shard), next_(next) {}

  Result<std::optional<pipeline::Document>> Next() override {
    if (next_ == kDemoDocuments) return std::nullopt;
    id_ = std::to_string(shard_) + "/" + std::to_string(next_);
    body_ = DemoDocument(shard_, next_);
    position_ = std::to_string(++next_);
    return pipeline::Document{
        .id = id_, .routing = {}, .body = body_, .position = position_, .defect = {}};
  }

 private:
  const int shard_;
  int64_t next_;
  std::string id_;
  std::string body_;
  std::string position_;
};

class DemoSource final : public pipeline::Source {
 public:
  Result<std::vector<pipeline::Collection>> Collections() override {
    return std::vector<pipeline::Collection>{{.name = kCollection}};
  }
  Result<std::vector<pipeline::Partition>> Partitions(const std::string& collection) override {
    std::vector<pipeline::Partition> partitions;
    for (int shard = 0; shard < kDemoShards; ++shard) {
      partitions.push_back({.collection = collection, .shard = shard, .documents = kDemoDocuments});
    }
    return partitions;
  }
  Result<std::unique_ptr<pipeline::Reader>> Read(const pipeline::Partition& partition,
                                                 const std::string& position,
                                                 std::stop_token /*stop*/) override {
    return std::make_unique<DemoReader>(partition.shard,
                                        NumberOf(position.empty() ? partition.begin : position));
  }
  std::optional<double> FractionBefore(const pipeline::Partition& /*partition*/,
                                       const std::string& position) override {
    return static_cast<double>(NumberOf(position)) / static_cast<double>(kDemoDocuments);
  }
};

class DemoWriter final : public pipeline::Writer {
 public:
  DemoWriter(DemoTarget& target, Env& env, const Say& say, pipeline::Fence fence,
             DemoTarget::Known known)
      : target_(target), env_(env), say_(say), fence_(std::move(fence)), known_(std::move(known)) {}

  const std::optional<pipeline::Progress>& Known() const override { return known_.progress; }
  bool Sealed() const override { return known_.sealed; }

  Result<std::vector<pipeline::Refused>> Write(const pipeline::Batch& batch,
                                               const pipeline::Progress& after,
                                               const pipeline::Patience& patience) override {
    if (auto appended = target_.Append(fence_.item, fence_.epoch, batch, after); !appended) {
      if (appended.error().code == Code::kLeaseLost) {
        say_("writes to " + fence_.item + " too late: the target refuses epoch " +
             std::to_string(fence_.epoch));
      }
      return appended.error();
    }
    env_.Sleep(kPause, patience.stop);
    return std::vector<pipeline::Refused>();
  }

  Result<std::optional<pipeline::Progress>> Seal() override {
    return target_.Seal(fence_.item, fence_.epoch);
  }

 private:
  DemoTarget& target_;
  Env& env_;
  const Say& say_;
  const pipeline::Fence fence_;
  const DemoTarget::Known known_;
};

class DemoSink final : public pipeline::Sink {
 public:
  DemoSink(DemoTarget& target, Env& env, const Say& say) : target_(target), env_(env), say_(say) {}

  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& /*collection*/,
                                                      bool /*evaluate*/) override {
    return std::vector<pipeline::TargetChange>();
  }
  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& /*collection*/,
                                                 const pipeline::Fence& fence) override {
    MUSTER_ASSIGN(auto known, target_.OpenFence(fence.item, fence.epoch));
    return std::make_unique<DemoWriter>(target_, env_, say_, fence, std::move(known));
  }

 private:
  DemoTarget& target_;
  Env& env_;
  const Say& say_;
};

// Every document can be migrated.
class NoDeadLetters final : public pipeline::DeadLetters {
 public:
  Status Add(const pipeline::DeadLetter& letter) override {
    return Error{Code::kInternal, "the demo refused a document: " + std::string(letter.reason)};
  }
  Status Flush() override { return {}; }
};

class Narrator final : public work::WorkObserver {
 public:
  explicit Narrator(const Say& say) : say_(say) {}

  void Acquired(const work::WorkItem& item, const pipeline::Progress& from) override {
    say_(item.fence().epoch == 1 ? "takes " + item.name()
                                 : "takes over " + item.name() + " at document " +
                                       std::to_string(NumberOf(from.position)) + ", epoch " +
                                       std::to_string(item.fence().epoch));
  }
  void Ended(const work::WorkItem& item, work::ShardOutcome outcome,
             const Error* /*why*/) override {
    if (outcome == work::ShardOutcome::kLost) say_("no longer holds " + item.name());
    if (outcome == work::ShardOutcome::kReleased) say_("gives " + item.name() + " back and leaves");
    if (outcome == work::ShardOutcome::kHandedOver)
      say_("hands " + item.name() + " over and leaves");
  }

 private:
  const Say& say_;
};

}  // namespace

std::string DemoDocument(int shard, int64_t number) {
  char body[160];
  std::snprintf(body, sizeof body, R"({"id":"%d/%lld","customer":"c%03lld","total":%lld.%02lld})",
                shard, static_cast<long long>(number), static_cast<long long>(number * 37 % 1000),
                static_cast<long long>(number * 13 % 500), static_cast<long long>(number % 100));
  return body;
}

Result<std::unique_ptr<DemoTarget>> DemoTarget::Open(const std::string& path) {
  MUSTER_ASSIGN(auto db, sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kCreate, kBusyTimeout));
  MUSTER_TRY(db->Execute(R"(
    CREATE TABLE IF NOT EXISTS documents (id TEXT NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS documents_by_id ON documents (id);
    CREATE TABLE IF NOT EXISTS fences (
      item TEXT PRIMARY KEY, epoch INTEGER NOT NULL, sealed INTEGER NOT NULL DEFAULT 0,
      progress TEXT NOT NULL DEFAULT '') STRICT)"));
  return std::unique_ptr<DemoTarget>(new DemoTarget(std::move(db)));
}

Result<DemoTarget::Known> DemoTarget::OpenFence(const std::string& item, int64_t epoch) {
  MUSTER_ASSIGN(auto raise, db_->Prepare("INSERT INTO fences (item, epoch) VALUES (?1, ?2)"
                                         " ON CONFLICT (item) DO UPDATE SET epoch = ?2"
                                         " WHERE epoch <= ?2 RETURNING progress, sealed"));
  MUSTER_ASSIGN(const bool raised, raise.Bind(item, epoch).Step());
  if (!raised) return Error{Code::kLeaseLost, "the target has a newer holder of " + item};
  const std::string progress(raise.Text(0));
  Known known{.progress = std::nullopt, .sealed = raise.Int(1) != 0};
  raise.Reset();
  if (!progress.empty()) {
    MUSTER_ASSIGN(known.progress, pipeline::Progress::Parse(progress));
  }
  return known;
}

Status DemoTarget::Append(const std::string& item, int64_t epoch, const pipeline::Batch& batch,
                          const pipeline::Progress& after) {
  MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*db_));
  MUSTER_ASSIGN(auto advance, db_->Prepare("UPDATE fences SET progress = ?3"
                                           " WHERE item = ?1 AND epoch = ?2 AND NOT sealed"));
  MUSTER_TRY(advance.Bind(item, epoch, after.ToString()).Run());
  if (db_->Changes() != 1) {
    return Error{Code::kLeaseLost, "the target refuses a write of epoch " + std::to_string(epoch)};
  }
  MUSTER_ASSIGN(auto insert, db_->Prepare("INSERT INTO documents VALUES (?, ?)"));
  for (const pipeline::Document& document : batch.documents) {
    MUSTER_TRY(insert.Bind(document.id, document.body).Run());
  }
  return transaction.Commit();
}

Result<std::optional<pipeline::Progress>> DemoTarget::Seal(const std::string& item, int64_t epoch) {
  MUSTER_ASSIGN(auto seal, db_->Prepare("UPDATE fences SET sealed = 1 WHERE item = ?1 AND epoch ="
                                        " ?2 RETURNING progress"));
  MUSTER_ASSIGN(const bool sealed, seal.Bind(item, epoch).Step());
  if (!sealed) return Error{Code::kLeaseLost, "the target has a newer holder of " + item};
  const std::string progress(seal.Text(0));
  seal.Reset();
  return pipeline::Progress::Parse(progress);
}

Result<DemoTarget::Comparison> DemoTarget::Compare() {
  Comparison comparison;
  MUSTER_ASSIGN(comparison.found, db_->QueryInt("SELECT count(*) FROM documents"));
  MUSTER_ASSIGN(auto find, db_->Prepare("SELECT body FROM documents WHERE id = ?"));
  for (int shard = 0; shard < kDemoShards; ++shard) {
    for (int64_t number = 0; number < kDemoDocuments; ++number) {
      find.Bind(std::to_string(shard) + "/" + std::to_string(number));
      ++comparison.expected;
      MUSTER_ASSIGN(const bool found, find.Step());
      if (!found) ++comparison.missing;
      if (found && find.Text(0) != DemoDocument(shard, number)) ++comparison.wrong;
      find.Reset();
    }
  }
  return comparison;
}

Status RunDemoWorker(const DemoFolder& folder, const std::string& name, Env& env, const Say& say,
                     std::stop_token stop) {
  MUSTER_ASSIGN(const auto store, store::OpenStore(folder.StoreUrl(), env));
  MUSTER_ASSIGN(const auto target, DemoTarget::Open(folder.TargetPath()));
  MUSTER_ASSIGN(const auto transforms, pipeline::ParseTransforms("", ""));
  DemoSource source;
  DemoSink sink(*target, env, say);
  NoDeadLetters dead_letters;
  pipeline::Throttle throttle(env);
  pipeline::Pipeline pipeline{.env = env,
                              .source = source,
                              .transforms = *transforms,
                              .sink = sink,
                              .dead_letters = dead_letters,
                              .throttle = throttle,
                              .options = {.limits = kLimits, .read_ahead = false}};
  Narrator narrator(say);
  const work::WorkerOptions options{.run = {.name = kDemoRun}, .terms = kTerms, .worker = name};
  MUSTER_TRY(work::RunWorker(*store, pipeline, options, narrator, std::move(stop)));
  return {};
}

}  // namespace muster::cli
