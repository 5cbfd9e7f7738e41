// What `muster` does not migrate of a snapshot is named, in every command that reads it.

#include <gtest/gtest.h>

#include <fstream>

#include "cli/program.h"
#include "core/json.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class LeftOutOfSnapshots : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    name_ = UniqueName("left-" + RealEnv().NewId().substr(0, 8));
    stream_ = name_ + "-stream";
    folder_ = Server().RepositoryFolder() + "/" + name_;
    Server().Call("PUT", "/_index_template/" + name_,
                  R"({"index_patterns":[")" + stream_ + R"("],"priority":300,"data_stream":{}})");
    for (const char* shape : {"-plain", "-hidden"}) {
      const std::string hidden = std::string(shape) == "-hidden" ? "true" : "false";
      Server().Call("PUT", "/" + name_ + shape,
                    R"({"settings":{"number_of_replicas":0,"index.hidden":)" + hidden + "}}");
      Add(name_ + shape, "index");
    }
    Server().Call("PUT", "/." + name_ + "-dot");
    // As a store marks its index, whatever its namespace.
    Server().Call("PUT", "/" + name_ + "-store", R"({"mappings":{"_meta":{"muster_schema":1}}})");
    Add(stream_, "create");
    Server().Call("PUT", "/_snapshot/" + name_,
                  R"({"type":"fs","settings":{"location":")" + folder_ + R"("}})");
    Server().Call("PUT", "/_snapshot/" + name_ + "/s?wait_for_completion=true",
                  R"({"indices":")" + name_ + "*,." + name_ + R"(-dot"})");
    Server().Call("DELETE", "/_snapshot/" + name_);
  }
  void TearDown() override {
    if (name_.empty()) return;
    Server().Call("DELETE", "/_data_stream/" + stream_);
    Server().Call("DELETE", "/_index_template/" + name_);
    Server().Call("DELETE", "/." + name_ + "-dot");
    Server().Call("DELETE", "/" + name_ + "*?expand_wildcards=all");
  }

  static void Add(const std::string& index, const std::string& action) {
    Server().Call("POST", "/" + index + "/_bulk?refresh",
                  "{\"" + action + R"(":{"_id":"1"}})" + "\n" +
                      R"({"@timestamp":"2026-01-01T00:00:00Z"})" + "\n");
  }
  static OpenSearchServer& Server() { return OpenSearchServer::Shared(); }
  std::string Source(const std::string& part = "") const {
    return "snapshot+file://" + folder_ + part;
  }
  void ExpectReasons(const std::string& out) const {
    EXPECT_TRUE(Has(out, "Left out: " + name_ + "-hidden (hidden: name it")) << out;
    EXPECT_TRUE(Has(out, "Left out: ." + name_ + "-dot (the name begins with a dot")) << out;
    EXPECT_TRUE(Has(out, "Left out: " + name_ + "-store (a Muster store)")) << out;
  }

  std::string name_;
  std::string stream_;
  std::string folder_;
  const TempFolder files_;
};

TEST_F(LeftOutOfSnapshots, IsNamedByEveryCommand) {
  const std::string out = "jsonl:" + (files_ / "out") + "/";
  const std::vector<std::string> rest{"--exclude", stream_, "--progress=none"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return RunMuster(arguments);
  };
  const Outcome migrated = run({"migrate", Source(), out});
  EXPECT_EQ(migrated.exit_code, 0) << migrated.err;
  ExpectReasons(migrated.out);
  const Outcome verified = run({"verify", Source(), out});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  ExpectReasons(verified.out);
  const Outcome worked =
      run({"worker", Source(), "jsonl:" + (files_ / "work") + "/", "--store",
           "sqlite:" + (files_ / "work.db"), "--dead-letters", files_ / "letters.jsonl"});
  EXPECT_EQ(worked.exit_code, 0) << worked.err;
  ExpectReasons(worked.out);
  const Json json = ParseJson(run({"verify", Source(), out, "--json"}).out, "report").value();
  EXPECT_EQ(json["left_out"].size(), 3U) << json;

  const Outcome listed = RunMuster({"snapshot", "list", folder_});
  EXPECT_TRUE(Has(listed.out, "part of data stream " + stream_)) << listed.out;
  EXPECT_TRUE(Has(listed.out, "hidden: not migrated unless named")) << listed.out;
  EXPECT_TRUE(Has(listed.out, "a Muster store: not migrated")) << listed.out;
  const Outcome evaluated =
      RunMuster({"metadata", "evaluate", Source(),
                 "opensearch+http://127.0.0.1:" + std::to_string(Server().port())});
  EXPECT_TRUE(Has(evaluated.out, "it is a Muster store")) << evaluated.out << evaluated.err;
}

TEST_F(LeftOutOfSnapshots, ADataStreamIsMigratedAsOne) {
  const std::string target = "opensearch+http://127.0.0.1:" + std::to_string(Server().port());
  const std::string copy = name_ + "-copied";
  const std::string transforms = files_ / "t.yaml";
  std::ofstream(transforms) << "- rename_index: {" << stream_ << ": " << copy << "}\n";
  for (int run = 1; run <= 2; ++run) {
    const Outcome migrated = RunMuster(
        {"migrate", Source("#" + stream_), target, "--transforms", transforms, "--progress=none"});
    EXPECT_EQ(migrated.exit_code, 0) << migrated.out << migrated.err;
    const Outcome verified = RunMuster({"verify", "--checksums", Source("#" + stream_), target,
                                        "--transforms", transforms, "--progress=none"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  }
  const std::string made = Server().Call("GET", "/_data_stream/" + copy);
  EXPECT_TRUE(Has(made, "\"name\":\"" + copy + "\"")) << made;
  Server().Call("DELETE", "/_data_stream/" + copy);
  Server().Call("DELETE", "/_index_template/" + copy);
}

TEST_F(LeftOutOfSnapshots, CanBeMigratedByName) {
  const std::string target =
      "opensearch+http://127.0.0.1:" + std::to_string(Server().port()) + "/" + name_ + "-copy";
  const Outcome stream = RunMuster(
      {"migrate", Source("#.ds-" + stream_ + "-*"), target, "--merge", "--progress=none"});
  EXPECT_EQ(stream.exit_code, 0) << stream.out << stream.err;
  Server().Call("POST", "/" + name_ + "-copy/_refresh");
  EXPECT_TRUE(Has(Server().Call("GET", "/" + name_ + "-copy/_count"), "\"count\":1"));
  for (const std::string& index : {name_ + "-hidden", "." + name_ + "-dot"}) {
    const Outcome one = RunMuster({"migrate", Source("#" + index),
                                   "jsonl:" + (files_ / index) + ".jsonl", "--progress=none"});
    EXPECT_EQ(one.exit_code, 0) << one.err;
  }
  const Outcome store = RunMuster({"migrate", Source("#" + name_ + "-store"),
                                   "jsonl:" + (files_ / "store.jsonl"), "--progress=none"});
  EXPECT_EQ(store.exit_code, 3) << store.out << store.err;
  EXPECT_TRUE(Has(store.out, "Left out: " + name_ + "-store (a Muster store)")) << store.out;
}

}  // namespace
}  // namespace muster::testing
