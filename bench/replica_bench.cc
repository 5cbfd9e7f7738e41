// Replica sets on PostgreSQL beside the raw limit of the same server: a batched append beside a
// bare prepared insert of as many rows, a projection that does nothing beside a bare read with a
// checkpoint, and how long a join and a takeover last at the defaults.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "arguments.h"
#include "bench_server.h"
#include "core/json.h"
#include "core/log.h"
#include "median.h"
#include "must.h"
#include "muster/replica.h"
#include "replica/set_records.h"
#include "sql/postgres.h"
#include "support/postgres_server.h"

extern char** environ;

namespace muster::bench {
namespace {

using namespace std::chrono_literals;

constexpr char kWorkerMode[] = "--run-worker";
constexpr int kBatch = 1'000;

struct Options {
  int64_t events = 400'000;
  int rounds = 5;
  std::vector<int> workers = {1, 2, 4, 8};
  bool smoke = false;
  bool json = false;
};

double SecondsSince(MonoTime begin) {
  return std::chrono::duration<double>(RealEnv().MonoNow() - begin).count();
}

std::string Payload(int64_t number) {
  return "{\"order\":" + std::to_string(number) + ",\"customer\":\"c" +
         std::to_string(number % 1000) + "\",\"total\":" + std::to_string(number % 500) +
         ".25,\"note\":\"" + std::string(100, 'x') + "\"}";
}

// Counts, and does nothing else.
class Nothing final : public replica::Projection {
 public:
  explicit Nothing(std::atomic<int64_t>& handled) : handled_(handled) {}
  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<replica::Processor>> Build(const replica::ReplicaPartition&) override {
    class Hand final : public replica::Processor {
     public:
      explicit Hand(std::atomic<int64_t>& handled) : handled_(handled) {}
      Status Handle(std::span<const events::Event> events, replica::Transaction&) override {
        handled_ += static_cast<int64_t>(events.size());
        return {};
      }

     private:
      std::atomic<int64_t>& handled_;
    };
    return std::make_unique<Hand>(handled_);
  }

 private:
  const std::string name_ = "nothing";
  std::atomic<int64_t>& handled_;
};

// One worker in a thread, and what it has said.
class LiveWorker final : public replica::ReplicaObserver {
 public:
  LiveWorker(const std::string& url, const std::string& set, std::atomic<int64_t>& handled)
      : store_(Must(store::OpenStore(url, RealEnv()))),
        log_(Must(events::OpenEventLog(url, {}, RealEnv()))) {
    replica::ReplicaOptions options;
    options.set = set;
    options.batch = kBatch;
    orchestrator_ = Must(replica::NewOrchestrator(
        *store_, *log_, url, {std::make_shared<Nothing>(handled)}, options, *this, RealEnv()));
    thread_ = std::jthread([this](std::stop_token stop) {
      if (auto ended = orchestrator_->Run(std::move(stop)); !ended) {
        std::cerr << ended.error().ToString() << "\n";
      }
    });
  }

  void Happened(const replica::ReplicaEvent& event) override {
    if (event.kind != replica::ReplicaEvent::Kind::kRunning) return;
    std::lock_guard lock(mutex_);
    partitions_ = event.partitions;
    changed_.notify_all();
  }

  void AwaitPartitions(int count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 120s, [&] { return partitions_ == count; })) {
      throw std::runtime_error("a worker never runs in " + std::to_string(count) + " partitions");
    }
  }

 private:
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<events::EventLog> log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int partitions_ = 0;
  std::unique_ptr<replica::Orchestrator> orchestrator_;
  std::jthread thread_;
};

class ReplicaBench {
 public:
  explicit ReplicaBench(const Options& options)
      : options_(options), server_(options.smoke, {.durable = true}), url_(server_->Url()) {
    connection_ = Must(sql::PgConnection::Open({.uri = url_, .call_timeout = 60s}));
  }

  int Run() {
    log_ = Must(events::OpenEventLog(url_, {}, RealEnv()));
    std::vector<double> appends;
    for (int round = 0; round < options_.rounds; ++round) appends.push_back(AppendRound());
    append_ratio_ = MedianOf(appends);
    Fill();
    std::vector<double> raw;
    for (int round = 0; round < options_.rounds; ++round) {
      raw.push_back(RawRead());
      for (const int workers : options_.workers) {
        follow_[workers].push_back(Follow(workers) / raw.back());
      }
    }
    raw_rate_ = MedianOf(raw);
    std::vector<double> joins, takeovers;
    for (int round = 0; round < options_.rounds; ++round) {
      joins.push_back(Join());
      takeovers.push_back(TakeOver());
    }
    join_ = MedianOf(joins);
    takeover_ = MedianOf(takeovers);
    return Report();
  }

 private:
  // Rows per second of ours over those of a bare insert into a table of the same shape.
  double AppendRound() {
    const int batches = options_.smoke ? 2 : 100;
    if (!raw_table_) {
      raw_table_ = true;
      Sql("CREATE TABLE raw_events (LIKE muster.events INCLUDING ALL)");
      Sql("CREATE SEQUENCE raw_position");
    }
    const sql::PgStatement insert{
        "raw_insert",
        "INSERT INTO raw_events (position, stream, version, slot, id, type, payload, metadata) "
        "SELECT nextval('raw_position'), $1::text, v, $2::integer, i, t, p, m FROM "
        "unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[]) u(v, i, t, p, m)"};
    const std::string tag = RealEnv().NewId();
    const auto ours = [&](int batch) {
      events::StreamAppend append{"stream-" + tag + std::to_string(batch), 0, {}};
      for (int i = 0; i < kBatch; ++i) {
        append.events.push_back({.type = "OrderPlaced", .payload = Payload(i), .id = tag});
      }
      Must(log_->Append({&append, 1}));
    };
    const auto raw = [&](int batch) {
      using Element = sql::PgArray::Element;
      sql::PgArray versions(Element::kBigint, kBatch), ids(Element::kText, kBatch, kBatch * 32),
          types(Element::kText, kBatch, kBatch * 12),
          payloads(Element::kText, kBatch, kBatch * 200),
          metadata(Element::kText, kBatch, kBatch * 2);
      for (int i = 0; i < kBatch; ++i) {
        versions.Int64(i + 1);
        ids.Text(tag);
        types.Text("OrderPlaced");
        payloads.Text(Payload(i));
        metadata.Text("{}");
      }
      sql::PgParams params;
      const std::string stream = "stream-" + tag + std::to_string(batch);
      params.Text(stream)
          .Int32(events::SlotOf(stream, 128))
          .Text(versions.bytes())
          .Text(ids.bytes());
      params.Text(types.bytes()).Text(payloads.bytes()).Text(metadata.bytes());
      Must(connection_->Execute(insert, params));
    };
    double our_time = 0, raw_time = 0;
    for (int batch = 0; batch < batches; ++batch) {
      const MonoTime first = RealEnv().MonoNow();
      batch % 2 == 0 ? ours(batch) : raw(batch);
      (batch % 2 == 0 ? our_time : raw_time) += SecondsSince(first);
      const MonoTime second = RealEnv().MonoNow();
      batch % 2 == 0 ? raw(batch) : ours(batch);
      (batch % 2 == 0 ? raw_time : our_time) += SecondsSince(second);
    }
    return raw_time / our_time;
  }

  void Fill() {
    Sql("TRUNCATE muster.events");
    for (int64_t next = 0; next < options_.events;) {
      std::vector<events::StreamAppend> appends;
      for (int i = 0; i < 2'000 && next < options_.events; ++i, ++next) {
        appends.push_back({"order-" + std::to_string(next), 0, {{"OrderPlaced", Payload(next)}}});
      }
      Must(log_->Append(appends));
    }
    Sql("ANALYZE muster.events");
    Sql("CREATE TABLE raw_checkpoint (name text PRIMARY KEY, position bigint NOT NULL)");
  }

  // Events per second of a loop that reads a batch and upserts one checkpoint.
  double RawRead() {
    const sql::PgStatement read{
        "raw_read",
        "SELECT position, stream, version, slot, id, type, payload, metadata, "
        "time FROM muster.events WHERE position > $1::bigint ORDER BY position "
        "LIMIT " +
            std::to_string(kBatch),
        false};
    const sql::PgStatement upsert{
        "raw_upsert",
        "INSERT INTO raw_checkpoint VALUES ('raw', $1::bigint) ON CONFLICT "
        "(name) DO UPDATE SET position = excluded.position"};
    const MonoTime begin = RealEnv().MonoNow();
    int64_t position = 0, count = 0;
    for (;;) {
      const sql::PgResult rows = Must(connection_->Execute(read, sql::PgParams().Int64(position)));
      if (rows.rows() == 0) break;
      position = rows.Int64(rows.rows() - 1, 0);
      count += rows.rows();
      Must(connection_->Execute(upsert, sql::PgParams().Int64(position)));
    }
    return static_cast<double>(count) / SecondsSince(begin);
  }

  double Follow(int count) {
    const std::string set = "follow-" + RealEnv().NewId().substr(0, 8);
    std::atomic<int64_t> handled = 0;
    std::vector<std::unique_ptr<LiveWorker>> workers;
    for (int i = 0; i < count; ++i) {
      workers.push_back(std::make_unique<LiveWorker>(url_, set, handled));
    }
    workers.front()->AwaitPartitions(count);
    const MonoTime begin = RealEnv().MonoNow();
    const int64_t before = handled;
    while (handled < options_.events) RealEnv().Sleep(1ms, {});
    return static_cast<double>(options_.events - before) / SecondsSince(begin);
  }

  // Seconds from the start of a second worker to its part in a generation of two.
  double Join() {
    const std::string set = "join-" + RealEnv().NewId().substr(0, 8);
    std::atomic<int64_t> handled = 0;
    LiveWorker first(url_, set, handled);
    first.AwaitPartitions(1);
    const MonoTime begin = RealEnv().MonoNow();
    LiveWorker second(url_, set, handled);
    second.AwaitPartitions(2);
    return SecondsSince(begin);
  }

  // Seconds from the kill -9 of a worker to the time when the other has its slots.
  double TakeOver() {
    const std::string set = "takeover-" + RealEnv().NewId().substr(0, 8);
    std::atomic<int64_t> handled = 0;
    LiveWorker first(url_, set, handled);
    first.AwaitPartitions(1);
    const char* argv[] = {"replica_bench", kWorkerMode, url_.c_str(), set.c_str(), nullptr};
    pid_t pid = 0;
    if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(argv), environ) !=
        0) {
      throw std::runtime_error("no worker process could be started");
    }
    first.AwaitPartitions(2);
    const MonoTime begin = RealEnv().MonoNow();
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    first.AwaitPartitions(1);
    return SecondsSince(begin);
  }

  int Report() {
    struct Bar {
      std::string promise;
      double measured;
      bool holds;
    };
    const double one = MedianOf(follow_.at(options_.workers.front()));
    const double most = MedianOf(follow_.at(options_.workers.back()));
    const double timeout =
        std::chrono::duration<double>(replica::ReplicaOptions().heartbeat_timeout).count();
    const std::vector<Bar> bars = {
        {"batched append at least 85 % of a bare insert", append_ratio_, append_ratio_ >= 0.85},
        {"one worker at least 80 % of a bare read", one, one >= 0.80},
        {"more workers are together no slower than one (0.95)", most / one, most / one >= 0.95},
        {"a join reaches go in under 1 s", join_, join_ < 1},
        {"a takeover ends within 2 s after the heartbeat's timeout", takeover_ - timeout,
         takeover_ - timeout < 2},
        {"a takeover lasts less than 5 s", takeover_, takeover_ < 5},
    };
    Json json{{"raw_events_per_second", std::llround(raw_rate_)}, {"bars", Json::array()}};
    if (!options_.json) {
      std::cout << "bare read: " << std::llround(raw_rate_) << " events a second\n";
      for (const auto& [workers, ratios] : follow_) {
        std::cout << workers << " workers: " << MedianOf(ratios) << " of it\n";
      }
    }
    bool all = true;
    for (const Bar& bar : bars) {
      all &= bar.holds;
      json["bars"].push_back(
          {{"promise", bar.promise}, {"measured", bar.measured}, {"holds", bar.holds}});
      if (!options_.json) {
        std::cout << (bar.holds ? "holds  " : "BROKEN ") << bar.promise << ": " << bar.measured
                  << "\n";
      }
    }
    if (options_.json) std::cout << ToJsonText(json) << "\n";
    return all || options_.smoke ? 0 : 1;
  }

  void Sql(const std::string& sql) {
    Must(connection_->Execute(sql::PgStatement{"", sql}, sql::PgParams()));
  }

  const Options options_;
  const BenchServer<testing::PostgresServer> server_;
  const std::string url_;
  std::unique_ptr<sql::PgConnection> connection_;
  std::unique_ptr<events::EventLog> log_;
  bool raw_table_ = false;
  double append_ratio_ = 0, raw_rate_ = 0, join_ = 0, takeover_ = 0;
  std::map<int, std::vector<double>> follow_;  // of the raw rate in the same round
};

int Main(int argc, char** argv) {
  Options options;
  Arguments arguments(
      "Replica sets on PostgreSQL beside the raw limit of the same server, in alternating rounds.\n"
      "Exit code 1: a bar does not hold.");
  arguments.AddNumber("--events", options.events, "events in the log");
  arguments.AddNumber("--rounds", options.rounds, "rounds of each side", 1);
  arguments.AddNumbers("--workers", options.workers, "how many workers");
  arguments.AddFlag("--smoke", options.smoke, "one tiny round of everything; no bar counts");
  arguments.AddFlag("--json", options.json, "print JSON");
  arguments.Parse(argc, argv);
  if (options.smoke) {
    options.events = 2'000;
    options.rounds = 1;
    options.workers = {1, 2};
  }
  return ReplicaBench(options).Run();
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    muster::SetLogging(muster::Level::kError, muster::LogFormat::kText);
    if (argc == 4 && std::string_view(argv[1]) == muster::bench::kWorkerMode) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing else would kill it
      std::atomic<int64_t> handled = 0;
      muster::bench::LiveWorker worker(argv[2], argv[3], handled);
      for (;;) pause();
    }
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "replica_bench: " << failure.what() << "\n";
    return 1;
  }
}
