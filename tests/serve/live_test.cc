// Goal: API, live events and commands agree about real migrations, and actions do what they
// promise. Method: the built program serves while other processes of it migrate.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>

#include "cli/program.h"
#include "core/json.h"
#include "muster/store.h"
#include "serve/served.h"
#include "support/http_server.h"

namespace muster::testing {
namespace {

constexpr char kCanary[] = "canary-7f3a9c1e55";

std::string Documents(int count, const std::string& bad = "") {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "{\"_id\":\"" + std::to_string(i) + "\",\"n\":" + std::to_string(i) + "}\n";
  }
  return lines + bad;
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class ServeLive : public ::testing::Test {
 protected:
  Outcome Muster(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--store", served.store_url()});
    return RunMuster(arguments, served.folder());
  }

  // A run of two collections; one document of the second is unreadable.
  void Migrate() {
    Write(served.folder() + "/orders.jsonl", Documents(500));
    const Outcome worker =
        Muster({"worker", "--run", "r", "--name", "w", "jsonl:orders.jsonl", "jsonl:out"});
    ASSERT_EQ(worker.exit_code, 0) << worker.err;
  }

  Json GetJson(const std::string& path) {
    const net::HttpResponse response = served.Get(path);
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    return Json::parse(response.body, nullptr, false);
  }

  // Opens a stream of one topic.
  std::unique_ptr<RawConnection> Follow(const std::string& topic, const std::string& last = "") {
    auto viewer = std::make_unique<RawConnection>(served.port());
    viewer->Send("GET /api/v1/events?topic=" + topic +
                 " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(served.port()) +
                 "\r\nAuthorization: Bearer " + served.viewer_token() + "\r\n" +
                 (last.empty() ? "" : "Last-Event-ID: " + last + "\r\n") + "\r\n");
    return viewer;
  }

  // The last id in a stream's text.
  static std::string LastId(const std::string& text) {
    const size_t start = text.rfind("id: ") + 4;
    return text.substr(start, text.find('\n', start) - start);
  }

  Served served{{}, {std::string("MUSTER_CANARY=") + kCanary}};
};

TEST_F(ServeLive, ApiMatchesTheCommands) {
  Migrate();
  const Json status = Json::parse(Muster({"work", "status", "--json"}).out)[0];
  const Json work = GetJson("/api/v1/stores/0/work/r");
  for (const char* field : {"run", "source", "sink", "items", "done", "held", "waiting",
                            "quarantined", "incarnation", "state"}) {
    EXPECT_EQ(work[field], status[field]) << field;
  }
  for (const char* field : {"read", "written", "skipped", "failed"}) {
    EXPECT_EQ(work["counts"][field], status[field]) << field;
  }
  const Json list = Json::parse(Muster({"work", "list", "--json"}).out);
  const Json items = GetJson("/api/v1/stores/0/work/r/items");
  ASSERT_EQ(items["items"].size(), list.size());
  const std::string name = list[0]["item"];
  EXPECT_EQ(items["items"][name][0], 3);
  EXPECT_EQ(items["items"][name][6], list[0]["read"]);
  const Json item = GetJson("/api/v1/stores/0/work/r/items/" + name);
  EXPECT_EQ(item["epoch"], list[0]["epoch"]);
  EXPECT_FALSE(item["actions"]["retry"]["allowed"].get<bool>());
  const Json overview = GetJson("/api/v1/overview");
  EXPECT_EQ(overview["work"]["0/r"]["counts"], work["counts"]);
}

TEST_F(ServeLive, DamagedRecordsAreShownWithTheOthers) {
  Migrate();
  auto viewer = Follow("/api/v1/overview");
  viewer->ReadUntil("event: snapshot");
  const auto store = store::OpenStore(served.store_url(), RealEnv()).value();
  const auto put = [&](const char* kind, const char* key, const char* body) {
    const store::Change change = store::Change::Put(
        store::Record{.kind = kind, .queue = "r", .key = key, .body = body}, store::Due::Never());
    ASSERT_TRUE(store->Write({&change, 1}));
  };
  put("run", "bad", R"({"state":"ready","incarnation":"i","pages":[]})");
  put("work", "r/bad", R"({"state":[]})");
  put("replica", "bad/set", R"({"generation":[]})");
  put("states", "bad", R"({"execution":[]})");
  put("plan.run", "bad", R"({"execution":"e","inputs":{},"attempt":[]})");
  // The last of them has arrived.
  EXPECT_NE(viewer->ReadUntil("UNREADABLE").find("UNREADABLE"), std::string::npos);
  for (int i = 0; i < 3; ++i) {
    const Json overview = GetJson("/api/v1/overview");
    EXPECT_TRUE(overview["stores"]["0"]["reachable"].get<bool>()) << overview;
    EXPECT_EQ(overview["migrations"]["0/bad"]["status"], "UNREADABLE");
    const std::string why = overview["migrations"]["0/bad"]["why"];
    EXPECT_NE(why.find("'attempt'"), std::string::npos) << why;
    EXPECT_EQ(overview["work"]["0/bad"]["state"], "unreadable");
    EXPECT_EQ(overview["work"]["0/r"]["unreadable"], 1);
    EXPECT_EQ(overview["replica_sets"]["0/bad"]["phase"], "unreadable");
    const Json items = GetJson("/api/v1/stores/0/work/r/items");
    EXPECT_EQ(items["items"]["bad"][0], 5);
    for (const char* path :
         {"/api/v1/stores/0/migrations/bad", "/api/v1/stores/0/work/bad",
          "/api/v1/stores/0/work/r/items/bad", "/api/v1/stores/0/replica-sets/bad"}) {
      const net::HttpResponse response = served.Get(path);
      EXPECT_GE(response.status, 400) << path;
      EXPECT_NE(response.body.find("bad"), std::string::npos) << response.body;
    }
    EXPECT_EQ(GetJson("/api/v1/failures")["total"].get<int>() >= 4, true);
  }
  // The commands list them as well.
  for (const auto& [command, words] :
       {std::pair(std::vector<std::string>{"list"}, "bad "),
        std::pair(std::vector<std::string>{"work", "status"}, "unreadable"),
        std::pair(std::vector<std::string>{"work", "list", "--run", "r"}, "unreadable"),
        std::pair(std::vector<std::string>{"work", "list", "--run", "bad"}, "ITEM"),
        std::pair(std::vector<std::string>{"states", "list"}, "UNREADABLE")}) {
    const Outcome outcome = Muster(command);
    EXPECT_NE(outcome.out.find(words), std::string::npos) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.exit_code, 1) << command.front() << outcome.err;
  }
}

TEST_F(ServeLive, StreamStartsWithASnapshotFollowedByDeltas) {
  auto viewer = Follow("/api/v1/overview");
  std::string text = viewer->ReadUntil("event: snapshot");
  text += viewer->ReadUntil("\n\n");
  EXPECT_NE(text.find("Content-Type: text/event-stream"), std::string::npos) << text;
  Migrate();
  text += viewer->ReadUntil("\"state\":\"finished\"");
  EXPECT_NE(text.find("event: delta"), std::string::npos) << text;
  EXPECT_NE(text.find("\"work\":{\"0/r\":"), std::string::npos) << text;
}

TEST_F(ServeLive, ReconnectingViewerGetsOnlyWhatItMissed) {
  auto viewer = Follow("/api/v1/overview");
  std::string text = viewer->ReadUntil("event: snapshot");
  text += viewer->ReadUntil("\n\n");
  const std::string last = LastId(text);
  viewer.reset();
  Migrate();
  viewer = Follow("/api/v1/overview", last);
  text = viewer->ReadUntil("\"0/r\"");
  EXPECT_NE(text.find("event: delta"), std::string::npos) << text;
  EXPECT_EQ(text.find("event: snapshot"), std::string::npos) << text;

  // Another server does not know these ids.
  viewer.reset();
  served.process().End(SIGTERM);
  served.Start();
  viewer = Follow("/api/v1/overview", last);
  text = viewer->ReadUntil("\"0/r\"");
  EXPECT_NE(text.find("event: snapshot"), std::string::npos) << text;
}

TEST_F(ServeLive, DeadLetterCanBeFoundAndRedriven) {
  Write(served.folder() + "/orders.jsonl", Documents(10, "{\"broken\":\n"));
  const Outcome worker = Muster({"worker", "--run", "r", "jsonl:orders.jsonl", "jsonl:out"});
  EXPECT_EQ(worker.exit_code, 4) << worker.err;
  // The server may run as another user, who must own the letters: they are private.
  const std::string file = served.folder() + "/r.dead-letters.jsonl";
  struct stat info {};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  if (getuid() == 0) {
    const Json unread = GetJson("/api/v1/dead-letters")["files"]["r.dead-letters.jsonl"];
    const std::string why = unread["actions"]["redrive"].value("why", "");
    EXPECT_NE(why.find("it cannot be read: Permission denied"), std::string::npos) << unread;
  }
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  const Json overview = GetJson("/api/v1/overview");
  EXPECT_EQ(overview["dead_letters"], 1);
  ASSERT_EQ(overview["failures"].size(), 1U) << overview["failures"];
  const std::string path = overview["failures"].front()["examples"][0]["path"];
  const Json letters = GetJson(path);
  ASSERT_EQ(letters["letters"].size(), 1U) << letters;
  EXPECT_EQ(letters["letters"][0]["run"], "r");
  EXPECT_NE(letters["letters"][0]["error"], "");

  // Earlier readings are cached for a moment.
  Json redrive;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    redrive =
        GetJson("/api/v1/dead-letters")["files"]["r.dead-letters.jsonl"]["actions"]["redrive"];
  } while (!redrive["allowed"].get<bool>() && std::chrono::steady_clock::now() < give_up);
  EXPECT_TRUE(redrive["allowed"].get<bool>()) << redrive;
  const net::HttpResponse preview = served.Post(redrive["path"], R"({"preview":true})");
  EXPECT_EQ(preview.status, 200) << preview.body;
  EXPECT_EQ(Json::parse(preview.body)["affected"], 1);
}

TEST_F(ServeLive, MigrationCanBeFollowedRetriedAndCancelled) {
  Write(served.folder() + "/plan.yaml", R"(plan: p
variables: {place: elsewhere}
profiles: {local: {source: "jsonl:{place}.jsonl", target: "sqlite:t.db", staging: staging}}
retry: {extract: {attempts: 0}}
objects: {A: {}}
ranks:
  - {rank: 1, extract: [A]}
)");
  const Outcome run =
      Muster({"run", served.folder() + "/plan.yaml", "--input", "tenantId=t", "--input",
              "migrationId=m", "--input", "environment=dev", "--set", "place=missing"});
  ASSERT_EQ(run.exit_code, 1) << run.out << run.err;
  const Json migration = GetJson("/api/v1/stores/0/migrations/m");
  EXPECT_EQ(migration["status"], "FAILED");
  EXPECT_EQ(migration["tenant"], "t");
  EXPECT_NE(migration.value("why", ""), "");
  const Json task = migration["ranks"]["1"]["tasks"]["extract/A"];
  EXPECT_EQ(task["status"], "failed") << migration;
  EXPECT_TRUE(task["critical"].get<bool>());
  const Json detail = GetJson("/api/v1/stores/0/migrations/m/tasks/extract/A");
  EXPECT_NE(detail.value("error", ""), "");
  EXPECT_NE(detail.value("input", "").find("jsonl:missing.jsonl"), std::string::npos) << detail;
  EXPECT_GT(detail["log"].size(), 2U);
  EXPECT_EQ(detail["commands"][0]["command"],
            "muster retry m --task A --store " + served.store_url());

  const net::HttpResponse preview =
      served.Post("/api/v1/stores/0/migrations/m/retry", R"({"preview":true})");
  ASSERT_EQ(preview.status, 200) << preview.body;
  EXPECT_EQ(Json::parse(preview.body)["affects"][0]["name"], "extract/A");
  EXPECT_EQ(served.Post("/api/v1/stores/0/migrations/m/cancel", "{}").status, 409);

  auto viewer = Follow("/api/v1/stores/0/migrations/m");
  viewer->ReadUntil("event: snapshot");
  ASSERT_EQ(served.Post("/api/v1/stores/0/migrations/m/retry", "{}").status, 200);
  // It fails again, in another attempt with the same inputs.
  const std::string text = viewer->ReadUntil("\"attempt\":2");
  EXPECT_NE(text.find("\"attempt\":2"), std::string::npos) << text;
  const Outcome retry = Muster({"retry", "m"});
  EXPECT_EQ(retry.exit_code, 1) << retry.out << retry.err;
  const Json again = GetJson("/api/v1/stores/0/migrations/m/tasks/extract/A");
  EXPECT_NE(again.value("input", "").find("jsonl:missing.jsonl"), std::string::npos) << again;
  // All attempts are listed, with their tasks and the reason for their end.
  const auto has_ended = [](const Json& attempt) { return attempt["status"] == "FAILED"; };
  Json attempts;
  for (int look = 0; look < 600; ++look) {
    attempts = GetJson("/api/v1/stores/0/migrations/m")["attempts"];
    if (std::all_of(attempts.begin(), attempts.end(), has_ended)) break;
    RealEnv().Sleep(std::chrono::milliseconds(100), {});  // the view is refreshed at intervals
  }
  ASSERT_GE(attempts.size(), 2U) << attempts;
  for (const Json& attempt : attempts) {
    EXPECT_EQ(attempt["status"], "FAILED") << attempt;
    EXPECT_EQ(attempt["tasks"][0]["task"], "A");
    EXPECT_EQ(attempt["tasks"][0]["status"], "FAILED");
    EXPECT_NE(attempt.value("cause", ""), "");
  }
}

// As the command does, and not when a task fails for it.
TEST_F(ServeLive, ARetryThatThisServerCannotCarryOutIsRefusedAtOnce) {
  Write(served.folder() + "/load.sql", "SELECT 1;\n");
  Write(served.folder() + "/plan.yaml", R"(plan: p
profiles:
  local:
    source: "jsonl:missing.jsonl"
    target: "postgresql://me:${env:MUSTER_ONLY_THERE}@127.0.0.1:1/none"
    staging: staging
retry: {extract: {attempts: 0}, transform: {attempts: 0}}
objects: {A: {}}
scripts: {load: {file: load.sql, schema: s, table: a}}
ranks:
  - {rank: 1, extract: [A], transform: [load]}
)");
  const Outcome run =
      RunMuster({"--store", served.store_url(), "run", "plan.yaml", "--input", "tenantId=t",
                 "--input", "migrationId=m", "--input", "environment=dev"},
                served.folder(), {{"MUSTER_ONLY_THERE", "x"}});
  ASSERT_EQ(run.exit_code, 1) << run.out << run.err;
  for (const char* body : {R"({"preview":true})", "{}"}) {
    const net::HttpResponse retried = served.Post("/api/v1/stores/0/migrations/m/retry", body);
    EXPECT_GE(retried.status, 400) << retried.body;
    EXPECT_NE(retried.body.find("MUSTER_ONLY_THERE"), std::string::npos) << retried.body;
  }
  EXPECT_EQ(GetJson("/api/v1/stores/0/migrations/m")["attempts"].size(), 1U);
}

// A worker and a plan whose password is the canary; both fail, and report it everywhere.
TEST_F(ServeLive, SecretsAreInNoResponseLogMetricTraceOrHistory) {
  const HttpServer collector([](const HttpServerRequest&) { return Answer(200, "{}"); });
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--store", served.store_url(), "--log-level", "debug"});
    arguments.insert(arguments.end(), {"--otlp", collector.Url("")});
    const Outcome outcome = RunMuster(arguments, served.folder(), {{"MUSTER_CANARY", kCanary}});
    EXPECT_NE(outcome.exit_code, 0) << outcome.out;
    return outcome.out + outcome.err;
  };
  auto viewer = Follow("/api/v1/overview&topic=/api/v1/stores/0/migrations/m");
  viewer->ReadUntil("event: snapshot");
  Write(served.folder() + "/orders.jsonl", Documents(10));
  Write(served.folder() + "/load.sql", "SELECT 1;\n");
  Write(served.folder() + "/plan.yaml", R"(plan: p
profiles:
  local:
    source: "jsonl:orders.jsonl"
    target: "postgresql://me:${env:MUSTER_CANARY}@127.0.0.1:1/none"
    staging: staging
retry: {extract: {attempts: 0}, transform: {attempts: 0}}
objects: {A: {}}
scripts: {load: {file: load.sql, schema: s, table: a}}
ranks:
  - {rank: 1, extract: [A], transform: [load]}
)");
  std::string all = run({"worker", "--run", "r", "jsonl:orders.jsonl",
                         "postgresql://me:${env:MUSTER_CANARY}@127.0.0.1:1/none#t",
                         "--max-attempts", "1", "--lease", "0.5"});
  all += run({"run", "plan.yaml", "--input", "tenantId=t", "--input", "migrationId=m", "--input",
              "environment=dev"});
  all += viewer->ReadUntil("\"status\":\"FAILED\"");
  const net::HttpResponse retried = served.Post("/api/v1/stores/0/migrations/m/retry", "{}");
  EXPECT_EQ(retried.status, 200) << retried.body;
  all += retried.body + viewer->ReadUntil("\"attempt\":2");
  for (const char* path :
       {"/api/v1/overview", "/api/v1/failures", "/api/v1/session", "/api/v1/stores/0/migrations/m",
        "/api/v1/stores/0/migrations/m/tasks/transform/load", "/api/v1/dead-letters", "/metrics"}) {
    const net::HttpResponse answer = served.Get(path);
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    all += answer.body;
  }
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"history", "m"}, {"status", "m", "--json"}, {"work", "status"}}) {
    const Outcome output = Muster(command);
    all += output.out + output.err;
  }
  all += served.process().Log();
  for (const char* file : {"/audit", "/store.db", "/store.db-wal"}) {
    std::ifstream bytes(served.folder() + file, std::ios::binary);
    all.append(std::istreambuf_iterator<char>(bytes), {});
  }
  EXPECT_FALSE(collector.requests().empty());
  for (const HttpServerRequest& request : collector.requests()) all += request.body;
  EXPECT_NE(all.find("postgresql://me:${env:MUSTER_CANARY}@127.0.0.1:1/none"), std::string::npos);
  const size_t found = all.find(kCanary);
  EXPECT_EQ(found, std::string::npos) << all.substr(found < 300 ? 0 : found - 300, 600);
  // Nor do tokens appear, except in the login link, which is printed once.
  const size_t link = all.find(served.operator_token());
  if (link != all.npos) all.erase(link, served.operator_token().size());
  EXPECT_EQ(all.find(served.operator_token()), std::string::npos);
}

}  // namespace
}  // namespace muster::testing
