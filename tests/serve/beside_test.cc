// Goal: commands with --serve show and count their own work. Method: requests to each command while
// it works.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>

#include "cli/program.h"
#include "core/json.h"
#include "net/http.h"
#include "support/await.h"
#include "support/server_process.h"

namespace muster::testing {
namespace {

class ServeBeside : public ::testing::Test {
 protected:
  std::string At(const std::string& name) const { return process_.folder() + "/" + name; }
  std::string store() const { return "sqlite:" + At("store.db"); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(At(name), std::ios::binary) << text;
  }

  void Start(std::vector<std::string> arguments) {
    process_.GiveFolderToServer();
    arguments.insert(arguments.begin(), MUSTER_PROGRAM);
    arguments.insert(arguments.end(), {"--store", store(), "--serve", "0"});
    process_.Start(arguments, {"XDG_STATE_HOME=" + process_.folder()});
    Await([&] { return After(process_.Log(), "dashboard: ") != ""; });
    url_ = After(process_.Log(), "dashboard: ");
    std::ifstream tokens(At("muster/serve.tokens"));
    std::string role;
    tokens >> role >> token_;
  }

  std::string Get(const std::string& path) {
    const auto response =
        client_.Send({.url = url_ + path, .headers = {{"Authorization", "Bearer " + token_}}});
    return response && response->status == 200 ? response->body : "";
  }
  Json GetJson(const std::string& path) {
    Json json = Json::parse(Get("api/v1/stores/0/" + path), nullptr, false);
    return json.is_object() ? json : Json::object();
  }

  void Await(const std::function<bool()>& holds) {
    const bool held = testing::Await([&] {
      if (!process_.IsRunning()) throw std::runtime_error("muster ended: " + process_.Log());
      return holds();
    });
    ASSERT_TRUE(held) << process_.Log() << Get("metrics");
  }
  void AwaitMetric(const std::string& line) {
    Await([&] { return Get("metrics").find("\n" + line) != std::string::npos; });
  }

 private:
  // The rest of the line, once it has an end.
  static std::string After(const std::string& text, const std::string& mark) {
    const size_t start = text.find(mark);
    const size_t end = start == text.npos ? start : text.find('\n', start);
    if (end == text.npos) return "";
    return text.substr(start + mark.size(), end - start - mark.size());
  }

  ServerProcess process_{"beside"};
  net::HttpClient client_{{.use_proxy = false}};
  std::string url_;
  std::string token_;
};

TEST_F(ServeBeside, AWorker) {
  std::string lines;
  for (int i = 0; i < 5'000; ++i) lines += "{\"_id\":\"" + std::to_string(i) + "\"}\n";
  Write("orders.jsonl", lines);
  Start({"worker", "--run", "r", "--docs-per-second", "200", "--max-docs-per-batch", "50",
         "--dead-letters", At("letters.jsonl"), "jsonl:" + At("orders.jsonl"),
         "jsonl:" + At("out")});
  AwaitMetric("muster_leases_acquired_total{takeover=\"false\"} 1");
  Await([&] { return GetJson("work/r").contains("latency"); });
  EXPECT_GE(GetJson("work/r")["latency"]["writes"], 1);
}

TEST_F(ServeBeside, ARunOfAPlan) {
  Write("plan.yaml", R"(plan: p
profiles: {local: {source: "postgresql://me@127.0.0.1:1/away", target: "sqlite:t.db", staging: staging}}
retry: {extract: {attempts: 1, interval: 600s}}
objects: {A: {}}
ranks:
  - {rank: 1, extract: [A]}
)");
  Start({"run", At("plan.yaml"), "--input", "tenantId=t", "--input", "migrationId=m", "--input",
         "environment=dev", "--progress=none"});
  Await([&] { return GetJson("migrations/m/tasks/extract/A").value("status", "") == "backoff"; });
  AwaitMetric("muster_task_outcomes_total{outcome=\"failed\",resource=\"muster:copy\"} 1");
  EXPECT_EQ(GetJson("migrations/m")["status"], "IN_PROGRESS");
}

TEST_F(ServeBeside, AReplicaSet) {
  Write("set.yaml", "set: orders\nevents: sqlite:" + At("shop.db") +
                        "\nread_model: sqlite:" + At("shop.db") + R"(
projections:
  orders:
    tables: [orders]
    setup: CREATE TABLE IF NOT EXISTS {orders} (id TEXT PRIMARY KEY)
    on:
      OrderPlaced: INSERT INTO {orders} (id) VALUES (:stream)
)");
  Write("events", R"({"stream":"order-1","type":"OrderPlaced","payload":{}})"
                  "\n");
  const Outcome appended = RunCommand(
      {"sh", "-c", std::string(MUSTER_PROGRAM) + " events append sqlite:shop.db < events"}, At(""));
  ASSERT_EQ(appended.exit_code, 0) << appended.err;
  Start({"replica", "run", At("set.yaml"), "--workers", "2", "--name", "w", "--progress=none"});
  AwaitMetric("muster_replica_barrier_seconds_count ");
  Await([&] {
    const Json set = GetJson("replica-sets/orders");
    return set.value("phase", "") == "running" && set.value("ready", 0) == 2 &&
           set["projections"]["orders"].value("handled", 0) == 1;
  });
  const Json set = GetJson("replica-sets/orders");
  std::set<std::string> names;
  for (const Json& member : set["members"]) names.insert(member["name"]);
  EXPECT_EQ(names, (std::set<std::string>{"w.1", "w.2"}));
}

}  // namespace
}  // namespace muster::testing
