// `muster snapshot create` on a real cluster, and on one that fails as real ones rarely do.

#include <gtest/gtest.h>

#include <atomic>

#include "cli/program.h"
#include "core/json.h"
#include "support/http_server.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class SnapshotCreate : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    for (const char* name : {"orders", "users"}) {
      const std::string index = UniqueName(name);
      Server().Call("PUT", "/" + index,
                    R"({"settings":{"number_of_shards":2,"number_of_replicas":0}})");
      for (int i = 0; i < 5; ++i) {
        Server().Call("PUT", "/" + index + "/_doc/" + std::to_string(i) + "?refresh=true",
                      R"({"n":)" + std::to_string(i) + ".0}");
      }
    }
  }
  void TearDown() override {
    if (!OpenSearchServer::Unavailable().empty()) return;
    for (const char* name : {"orders", "users"}) Server().Call("DELETE", "/" + UniqueName(name));
  }

  static OpenSearchServer& Server() { return OpenSearchServer::Shared(); }
  static std::string Cluster() {
    return "opensearch+http://127.0.0.1:" + std::to_string(Server().port());
  }
  std::string Location() const {
    return Server().RepositoryFolder() + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  static Outcome Create(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"snapshot", "create"});
    return RunMuster(arguments);
  }
};

TEST_F(SnapshotCreate, SnapshotThatItTakesIsReadable) {
  const std::string repository = UniqueName("taken");
  const std::string orders = UniqueName("orders");
  const std::vector<std::string> arguments{Cluster(),      Location(),        "first",
                                           "--repository", repository,        "--index",
                                           orders,         "--progress=json", "--json"};
  const Outcome taken = Create(arguments);
  ASSERT_EQ(taken.exit_code, 0) << taken.err << taken.out;
  const Json report = ParseJson(taken.out, "output").value();
  EXPECT_EQ(report["state"], "SUCCESS");
  EXPECT_EQ(report["registered"], true);
  EXPECT_EQ(report["existed"], false);
  EXPECT_EQ(report["repository"], repository);
  EXPECT_EQ(report["indices"], Json::array({orders}));
  EXPECT_EQ(report["shards"], 2);
  EXPECT_EQ(report["failed"], 0);

  const Outcome read = RunMuster({"snapshot", "cat", Location(), "--snapshot", "first"});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Has(read.out, R"("_source":{"n":)" + std::to_string(i) + ".0}")) << read.out;
  }
  EXPECT_FALSE(Has(read.out, UniqueName("users")));
  const TempFolder folder;
  const Outcome migrated = RunMuster({"migrate", "snapshot+file://" + Location() + "#" + orders,
                                      "jsonl:" + (folder / "out.jsonl"), "--progress=none"});
  EXPECT_EQ(migrated.exit_code, 0) << migrated.err;

  // The second command finds both.
  const Outcome again = Create(arguments);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json same = ParseJson(again.out, "output").value();
  EXPECT_EQ(same["registered"], false);
  EXPECT_EQ(same["existed"], true);
  EXPECT_EQ(same["indices"], report["indices"]);

  const Outcome other =
      Create({Cluster(), Location(), "first", "--index", UniqueName("users"), "--progress=none"});
  EXPECT_EQ(NotAClearError(other, 1), "") << other.err;
  EXPECT_TRUE(Has(other.err, "without index " + UniqueName("users"))) << other.err;
}

TEST_F(SnapshotCreate, ExistingRepositoryOfTheLocationIsUsed) {
  const std::string repository = UniqueName("known");
  Server().Call("PUT", "/_snapshot/" + repository,
                R"({"type":"fs","settings":{"location":")" + Location() + "/\"}}");
  const Outcome taken = Create({Cluster(), Location(), "a", "--index", UniqueName("*")});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_TRUE(Has(taken.out, "SUCCESS")) << taken.out;
  EXPECT_TRUE(Has(taken.out, repository)) << taken.out;
  EXPECT_FALSE(Has(taken.out, "registered")) << taken.out;

  const Outcome elsewhere =
      Create({Cluster(), Location() + "-b", "a", "--repository", repository, "--progress=none"});
  EXPECT_EQ(NotAClearError(elsewhere, 1), "");
  EXPECT_TRUE(Has(elsewhere.err, "for another location: fs " + Location())) << elsewhere.err;

  Server().Call("PUT", "/_snapshot/" + repository,
                R"({"type":"fs","settings":{"readonly":true,"location":")" + Location() + "\"}}");
  const Outcome read_only = Create({Cluster(), Location(), "b", "--progress=none"});
  EXPECT_EQ(NotAClearError(read_only, 5), "");
}

TEST_F(SnapshotCreate, ClosedIndicesAreTakenToo) {
  const std::string users = UniqueName("users");
  Server().Call("POST", "/" + users + "/_close");
  const Outcome taken = Create({Cluster(), Location(), "all", "--repository", UniqueName("closed"),
                                "--index", UniqueName("*"), "--json", "--progress=none"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const Json report = ParseJson(taken.out, "output").value();
  EXPECT_TRUE(Has(ToJsonText(report["indices"]), users)) << taken.out;
  EXPECT_TRUE(report["left_out"].empty()) << taken.out;
  const TempFolder folder;
  const Outcome migrated = RunMuster({"migrate", "snapshot+file://" + Location() + "#" + users,
                                      "jsonl:" + (folder / "out.jsonl"), "--progress=none"});
  EXPECT_EQ(migrated.exit_code, 0) << migrated.err;
  EXPECT_TRUE(Has(migrated.out, "5")) << migrated.out;
}

TEST_F(SnapshotCreate, ALocationThatTheClusterMayNotUseIsNotRegistered) {
  const std::string repository = UniqueName("refused");
  const Outcome outcome =
      Create({Cluster(), "/no/such/place", "a", "--repository", repository, "--progress=none"});
  EXPECT_EQ(NotAClearError(outcome, 2), "") << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "path.repo")) << outcome.err;
  EXPECT_FALSE(Has(Server().Call("GET", "/_snapshot"), repository));
}

TEST_F(SnapshotCreate, MissingIndicesMakeNoSnapshot) {
  const std::string repository = UniqueName("empty");
  for (const char* name : {"none", "none*"}) {
    const Outcome outcome = Create({Cluster(), Location(), "a", "--repository", repository,
                                    "--index", UniqueName(name), "--progress=none"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  }
  EXPECT_FALSE(Has(Server().Call("GET", "/_snapshot"), repository));
}

TEST_F(SnapshotCreate, IndexWithoutItsShardsMakesNoSnapshot) {
  const std::string index = UniqueName("homeless");
  Server().Call("PUT", "/" + index + "?wait_for_active_shards=0",
                R"({"settings":{"number_of_replicas":0,)"
                R"("index.routing.allocation.require._name":"no-such-node"}})");
  const Outcome outcome = Create({Cluster(), Location(), "a", "--repository", UniqueName("red"),
                                  "--index", index, "--progress=none"});
  Server().Call("DELETE", "/" + index);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "primary shards")) << outcome.err;
}

TEST(SnapshotCreateUsage, InvalidNamesAndLocationsAreRejected) {
  const std::string cluster = "opensearch+http://127.0.0.1:1";
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{cluster, "/repo", "a*"},
                                             {cluster, "/repo", "a,b"},
                                             {cluster, "/repo", "_all"},
                                             {cluster, "/repo", ""},
                                             {cluster, "/repo", "a", "--repository", "*"},
                                             {cluster, "repo", "a"},
                                             {cluster, "s3:///prefix", "a"},
                                             {cluster + "/index", "/repo", "a"},
                                             {"https://127.0.0.1:1", "/repo", "a"}}) {
    std::vector<std::string> arguments{"snapshot", "create", "--progress=none"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(RunMuster(arguments).exit_code, 2) << wrong[1] << " " << wrong[2];
  }
  EXPECT_EQ(NotAClearError(RunMuster({"snapshot", "create", cluster, "/repo", "a"}), 5), "");
}

// A cluster with one snapshot, in the state that the test sets.
class FakeCluster {
 public:
  std::string Url() const {
    return "opensearch+http://127.0.0.1:" + std::to_string(server_.port());
  }

  Outcome Create(const std::string& location = "/repo", std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"snapshot", "create",  Url(),
                                       location,   "nightly", "--progress=none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunMuster(arguments);
  }

  std::vector<HttpServerRequest> Writes() const {
    std::vector<HttpServerRequest> writes;
    for (const HttpServerRequest& request : server_.requests()) {
      if (request.method != "GET") writes.push_back(request);
    }
    return writes;
  }

  std::string repositories = R"({"muster":{"type":"fs","settings":{"location":"/repo"}}})";
  std::string indices = R"({"a":{}})";   // that it has
  std::string selected = R"({"a":{}})";  // of these, by --index
  std::string nodes = R"({"nodes":{}})";
  std::string end = R"({"state":"SUCCESS","indices":["a"],"shards":{"total":3,"failed":0}})";
  int looks_running = 3;    // how often it is in progress
  int looks_missing = 0;    // how often it is not listed yet, once it was started
  int failing_answers = 0;  // how often the cluster fails in between
  bool exists = false;      // before it is started

 private:
  HttpServerReply Serve(const HttpServerRequest& request) {
    if (request.target == "/_snapshot") return Answer(200, repositories);
    if (Has(request.target, "/_nodes/settings")) return Answer(200, nodes);
    if (Has(request.target, "/_settings/")) {
      return Answer(200, request.target.starts_with("/*/") ? indices : selected);
    }
    if (request.method == "PUT") {
      if (Has(request.target, "/nightly")) started_ = true;
      return Answer(200, R"({"acknowledged":true})");
    }
    if (Has(request.target, "/_status")) {
      return Answer(200, R"({"snapshots":[{"shards_stats":{"done":1,"failed":0,"total":3},)"
                         R"("stats":{"incremental":{"size_in_bytes":9},"processed":{}}}]})");
    }
    if ((!exists && !started_) || (started_ && looks_missing-- > 0)) {
      return Answer(404, R"({"error":{"type":"snapshot_missing_exception","reason":"x"}})");
    }
    if (looks_running-- > 0) {
      return Answer(200, R"({"snapshots":[{"state":"IN_PROGRESS","indices":["a"]}]})");
    }
    if (failing_answers-- > 0) return Answer(503, R"({"error":{"type":"x","reason":"busy"}})");
    return Answer(200, R"({"snapshots":[)" + end + "]}");
  }

  std::atomic<bool> started_ = false;
  HttpServer server_{[this](const HttpServerRequest& request) { return Serve(request); }};
};

TEST(SnapshotCreateOnFailures, AnIncompleteSnapshotIsNotSuccess) {
  for (const auto& [state, exit_code] :
       {std::pair("PARTIAL", 4), std::pair("FAILED", 1), std::pair("ODD", 1)}) {
    FakeCluster cluster;
    cluster.end = R"({"state":")" + std::string(state) +
                  R"(","indices":["a"],"shards":{"total":3,"failed":1},"reason":"shards are gone",)"
                  R"("failures":[{"index":"a","shard_id":2,"reason":"disk is full"}]})";
    const Outcome outcome = cluster.Create();
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.out << outcome.err;
    for (const char* part : {state, "shards are gone", "disk is full"}) {
      EXPECT_TRUE(Has(outcome.out, part)) << outcome.out;
    }
    // It stays so, and nothing else is started under its name.
    cluster.exists = true;
    const Outcome again = cluster.Create("/repo", {"--json"});
    EXPECT_EQ(again.exit_code, 1) << "it is not what was asked for";
    EXPECT_TRUE(Has(again.err, "is not complete: " + std::string(state))) << again.err;
    const Json json = ParseJson(again.out, "output").value();
    EXPECT_EQ(json["existed"], true);
    EXPECT_EQ(json["failures"][0]["shard"], 2);
    EXPECT_EQ(cluster.Writes().size(), 1U);
  }
}

TEST(SnapshotCreateOnFailures, AnOlderSnapshotOfOtherIndicesIsRefused) {
  FakeCluster cluster;
  cluster.exists = true;
  cluster.looks_running = 0;
  EXPECT_EQ(cluster.Create().exit_code, 0);
  cluster.indices = R"({"a":{},"b":{},".system":{}})";
  const Outcome less = cluster.Create();
  EXPECT_EQ(NotAClearError(less, 1), "");
  EXPECT_TRUE(Has(less.err, "snapshot 'nightly' already exists, without index b")) << less.err;

  cluster.end = R"({"state":"SUCCESS","indices":["a","b","deleted"],"shards":{"total":3}})";
  EXPECT_EQ(cluster.Create().exit_code, 0);
  const Outcome more = cluster.Create("/repo", {"--index", "a"});
  EXPECT_EQ(NotAClearError(more, 1), "");
  EXPECT_TRUE(Has(more.err, "which also has index b")) << more.err;
  cluster.selected = R"({"a":{},"b":{}})";
  EXPECT_EQ(cluster.Create("/repo", {"--index", "?"}).exit_code, 0);
  EXPECT_TRUE(cluster.Writes().empty());
}

TEST(SnapshotCreateOnFailures, ClosedIndicesAreAskedForAndNamedIfTheyAreMissing) {
  FakeCluster cluster;
  cluster.indices = R"({"a":{},"b":{"settings":{"index":{"verified_before_close":"true"}}}})";
  const Outcome outcome = cluster.Create();
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "Not in the snapshot: b (closed")) << outcome.out;
  ASSERT_EQ(cluster.Writes().size(), 1U);
  EXPECT_EQ(ParseJson(cluster.Writes()[0].body, "body").value()["indices"],
            Json::array({"*", "b"}));
}

TEST(SnapshotCreateOnFailures, AnIndexThatTheClusterLeavesOutIsNotSuccess) {
  FakeCluster cluster;
  cluster.selected = R"({"a":{},".own":{}})";
  const Outcome outcome = cluster.Create("/repo", {"--index", "a", "--index", ".own"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "Not in the snapshot: .own (left out")) << outcome.out;
  // Of everything, the cluster decides which of the system's own are a part.
  FakeCluster all;
  all.indices = R"({"a":{},".own":{}})";
  EXPECT_EQ(all.Create().exit_code, 0);
}

TEST(SnapshotCreateOnFailures, ALocationHasOneName) {
  FakeCluster cluster;
  const Outcome second = cluster.Create("/repo/./", {"--repository", "other"});
  EXPECT_EQ(NotAClearError(second, 1), "");
  EXPECT_TRUE(Has(second.err, "has this location already, as repository 'muster'")) << second.err;
  EXPECT_TRUE(cluster.Writes().empty());
  // Locations may be relative to a folder of the nodes' configuration.
  cluster.repositories = R"({"known":{"type":"fs","settings":{"location":"repo"}}})";
  cluster.nodes = R"({"nodes":{"n":{"settings":{"path":{"repo":["/x","/base"]}}}}})";
  EXPECT_EQ(cluster.Create("/base/repo", {"--repository", "other"}).exit_code, 1);
  EXPECT_TRUE(cluster.Writes().empty());
  EXPECT_TRUE(Has(cluster.Create("/base/repo", {"--json"}).out, R"("repository":"known")"));
}

TEST(SnapshotCreateOnFailures, ARunningSnapshotIsFollowedNotStarted) {
  FakeCluster cluster;
  cluster.exists = true;
  cluster.failing_answers = 2;
  const Outcome outcome = cluster.Create();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "was there already")) << outcome.out;
  EXPECT_TRUE(cluster.Writes().empty());
}

TEST(SnapshotCreateOnFailures, ASnapshotMayBeListedLate) {
  FakeCluster cluster;
  cluster.looks_missing = 3;
  EXPECT_EQ(cluster.Create().exit_code, 0);
}

TEST(SnapshotCreateOnFailures, SnapshotDeletedWhileItRunsIsAnError) {
  FakeCluster cluster;
  cluster.end = "";
  const Outcome outcome = cluster.Create();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "was deleted while it was taken")) << outcome.err;
}

TEST(SnapshotCreateOnFailures, BucketsAreRegisteredWithTheirSettings) {
  FakeCluster cluster;
  cluster.repositories = "{}";
  const Outcome outcome = cluster.Create(
      "s3://backups/some/where/?region=eu-central-1&endpoint=http://127.0.0.1:9", {"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(cluster.Writes().size(), 2U);
  EXPECT_EQ(cluster.Writes()[0].target, "/_snapshot/muster");
  EXPECT_EQ(ParseJson(cluster.Writes()[0].body, "body").value(),
            ParseJson(R"({"type":"s3","settings":{"bucket":"backups","base_path":"some/where",)"
                      R"("region":"eu-central-1","endpoint":"http://127.0.0.1:9",)"
                      R"("path_style_access":true}})",
                      "expected")
                .value());
  cluster.repositories =
      R"({"other":{"type":"s3","settings":{"bucket":"backups","base_path":"some/where/"}}})";
  cluster.exists = true;
  EXPECT_TRUE(Has(cluster.Create("s3://backups/some/where", {"--json"}).out,
                  R"("repository":"other","registered":false)"));
}

TEST(SnapshotCreateOnFailures, AnInterruptLeavesTheSnapshotRunning) {
  FakeCluster cluster;
  cluster.looks_running = 1'000'000;
  const Outcome outcome =
      RunCommand({"timeout", "--preserve-status", "-s", "INT", "2", MUSTER_PROGRAM, "snapshot",
                  "create", cluster.Url(), "/repo", "nightly", "--progress=none"});
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "which the cluster continues")) << outcome.err;
  for (const HttpServerRequest& write : cluster.Writes()) EXPECT_EQ(write.method, "PUT");
}

}  // namespace
}  // namespace muster::testing
