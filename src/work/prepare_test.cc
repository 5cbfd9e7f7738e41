// A run of many items is prepared in batches: the number of store writes predicts the time,
// whatever else the machine does. The time itself is printed.

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <set>

#include "muster/work.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/wrappers.h"
#include "store/store.h"
#include "store/store_wrapper.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "work/coordinator.h"
#include "work/records.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

// Fewer items are enough for a sanitizer.
#ifdef MUSTER_SANITIZED
constexpr size_t kItems = 10'000;
#else
constexpr size_t kItems = 100'000;
#endif
// Per thousand: the items, their page, and the preparation's progress.
constexpr int kWrites = 3 * kItems / 1'000;

class CountedStore final : public store::StoreWrapper {
 public:
  explicit CountedStore(store::Store& store) : store::StoreWrapper(store) {}

  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    if (++writes == stop_at) stop.request_stop();
    return inner().Write(changes);
  }

  int writes = 0;
  int stop_at = 0;  // the write at which the preparation is stopped
  std::stop_source stop;
};

class NoDeadLetters final : public pipeline::DeadLetters {
 public:
  Status Add(const pipeline::DeadLetter&) override { return {}; }
  Status Flush() override { return {}; }
};

class PrepareTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string url = "sqlite:" + folder_.At("store.db");
    if (GetParam() == "postgresql") {
      const std::string reason = testing::PostgresServer::Unavailable();
      if (!reason.empty()) GTEST_SKIP() << reason;
      testing::PostgresServer::Shared().Clear();
      url = testing::PostgresServer::Shared().Url();
    }
    opened_ = store::OpenStore(url, env_).value();
    store_.emplace(*opened_);
    for (size_t i = 0; i < kItems; ++i) source_.Add("orders", {std::to_string(i), "{}"});
  }

  Result<bool> Prepare(const std::string& worker, bool new_incarnation = false) {
    const RunSpec run{.name = "run", .new_incarnation = new_incarnation};
    const auto coordinator =
        WorkCoordinator::Join(*store_, env_, run, {.lease = 60s}, worker).value();
    return PrepareWork(*coordinator, pipeline_, {}, store_->stop.get_token());
  }

  void Lose(std::string_view kind, std::string_view key) {
    const store::Change change = store::Change::Delete(*store_->Get(kind, key).value());
    ASSERT_TRUE(store_->Write({&change, 1}).value().front().applied);
  }

  size_t CountItems() {
    size_t count = 0;
    for (std::string after;;) {
      const auto items = ListItems(*store_, "run", after, store::kMaxBatch).value();
      count += items.size();
      if (items.empty()) return count;
      after = items.back().key;
    }
  }

  Env& env_ = RealEnv();
  testing::TemporaryFolder folder_;
  std::unique_ptr<store::Store> opened_;
  std::optional<CountedStore> store_;
  pipeline::MemorySource source_{1};  // each document is a shard
  pipeline::MemorySink sink_;
  NoDeadLetters letters_;
  pipeline::Throttle throttle_{env_};
  std::unique_ptr<pipeline::TransformPlan> transforms_ = pipeline::ParseTransforms("", "").value();
  pipeline::Pipeline pipeline_{env_, source_, *transforms_, sink_, letters_, throttle_};
};

INSTANTIATE_TEST_SUITE_P(All, PrepareTest, ::testing::Values("sqlite", "postgresql"),
                         [](const auto& store) { return store.param; });

TEST_P(PrepareTest, ManyItemsAreCreatedInBatchesDespiteAStopAndALoss) {
  const MonoTime start = env_.MonoNow();
  store_->stop_at = kWrites / 2;
  ASSERT_FALSE(Prepare("first").value());
  EXPECT_LT(store_->writes, kWrites / 2 + 50);
  store_->stop = std::stop_source();
  ASSERT_TRUE(Prepare("second").value());
  const std::chrono::duration<double> seconds = env_.MonoNow() - start;
  std::cout << kItems << " items on " << GetParam() << ": " << store_->writes << " writes, "
            << seconds.count() << " s\n";
  EXPECT_LT(store_->writes, kWrites + 50);
  EXPECT_EQ(CountItems(), kItems);
  EXPECT_TRUE(ReadRun(*store_, "run")->ready);

  Lose(kPageKind, PageKey("run", 2));
  Lose(kWorkKind, ListItems(*store_, "run", "", 1).value().front().key);
  ASSERT_TRUE(Prepare("third", /*new_incarnation=*/true).value());
  EXPECT_EQ(CountItems(), kItems);
  EXPECT_TRUE(ReadRun(*store_, "run")->ready);
  EXPECT_TRUE(store_->Get(kPageKind, PageKey("run", 2)).value());
}

// A cluster that is read from and written to: targets are collections of the source, too.
struct Cluster {
  std::set<std::string> targets = {};
  bool is_down = false;    // once there is a target
  bool templates = false;  // were created after all targets
};

class ClusterSource final : public pipeline::SourceWrapper {
 public:
  ClusterSource(pipeline::Source& source, const Cluster& cluster)
      : SourceWrapper(source), cluster_(cluster) {}

  Result<std::vector<pipeline::Collection>> Collections() override {
    MUSTER_ASSIGN(auto all, inner().Collections());
    for (const std::string& target : cluster_.targets) {
      all.insert(all.begin(), pipeline::Collection{.name = target});
    }
    return all;
  }

 private:
  const Cluster& cluster_;
};

class ClusterSink final : public pipeline::SinkWrapper {
 public:
  ClusterSink(pipeline::Sink& sink, Cluster& cluster) : SinkWrapper(sink), cluster_(cluster) {}

  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& collection,
                                                      bool evaluate) override {
    if (!evaluate) {
      if (cluster_.is_down && !cluster_.targets.empty()) {
        return Error{Code::kUnavailable, "the cluster is down"};
      }
      cluster_.targets.insert(collection.name);
      cluster_.templates = false;
    }
    return SinkWrapper::Prepare(collection, evaluate);
  }
  Result<std::vector<pipeline::TargetChange>> PrepareGlobal(const std::string& metadata,
                                                            bool evaluate) override {
    cluster_.templates = true;
    return SinkWrapper::PrepareGlobal(metadata, evaluate);
  }

 private:
  Cluster& cluster_;
};

TEST(PreparationOnOneCluster, TargetsOfTheRunAreNotSources) {
  Env& env = RealEnv();
  Cluster cluster{.is_down = true};
  pipeline::MemorySource memory(100);
  for (const char* name : {"a", "b"}) memory.Add(name, {"1", "{}"});
  pipeline::MemorySink target;
  ClusterSource source(memory, cluster);
  ClusterSink sink(target, cluster);
  NoDeadLetters letters;
  pipeline::Throttle throttle(env);
  const auto transforms =
      pipeline::ParseTransforms("- rename_index: {'/^(.*)$/': 'copy-$1'}", "rules").value();
  pipeline::Pipeline pipeline{env, source, *transforms, sink, letters, throttle};
  const auto store = store::NewMemoryStore(env);
  const auto prepare = [&](bool new_incarnation) {
    const RunSpec run{.name = "run", .new_incarnation = new_incarnation};
    const auto coordinator = WorkCoordinator::Join(*store, env, run, {}, "worker").value();
    return PrepareWork(*coordinator, pipeline, {}, {});
  };
  EXPECT_EQ(prepare(false).error().code, Code::kUnavailable);
  EXPECT_EQ(cluster.targets.size(), 1U);
  cluster.is_down = false;
  // The next attempt is due after a second.
  for (int i = 0; i < 100 && !prepare(false).value(); ++i) env.Sleep(100ms, {});
  EXPECT_EQ(cluster.targets, (std::set<std::string>{"copy-a", "copy-b"}));
  EXPECT_TRUE(cluster.templates) << "they come last: they would apply to the targets";

  const store::Change lost =
      store::Change::Delete(*store->Get(kPageKind, PageKey("run", 1)).value());
  ASSERT_TRUE(store->Write({&lost, 1}));
  ASSERT_TRUE(prepare(/*new_incarnation=*/true).value());
  EXPECT_EQ(cluster.targets, (std::set<std::string>{"copy-a", "copy-b"}));
  EXPECT_EQ(ListItems(*store, "run", "", 10).value().size(), 2U);

  MigrationObserver nothing;
  cluster.targets.clear();
  EXPECT_EQ(MigrateAll(pipeline, {}, nothing, {}).value().read, 2);
  EXPECT_EQ(cluster.targets, (std::set<std::string>{"copy-a", "copy-b"}));
  EXPECT_TRUE(cluster.templates);
}

}  // namespace
}  // namespace muster::work
