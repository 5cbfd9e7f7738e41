// Whole clusters, and snapshots of them, from one version to another: metadata, documents, and the
// comparison of both.
//
// Without MUSTER_MATRIX=full only what the shared server can do: snapshots of its own version, and
// one that another version wrote.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "cli/program.h"
#include "core/json.h"
#include "matrix/content.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

struct Pair {
  std::string source;  // a distribution, or the archive of a repository
  std::string way;     // live, snapshot or archive
  std::string target;  // empty: the shared server
};

std::string NameOf(const Pair& pair) {
  std::string name = std::filesystem::path(pair.source).stem().stem().string();
  if (pair.way != "archive") name = pair.source;
  name += "_" + pair.way + (pair.target.empty() ? "" : "_" + pair.target);
  for (char& c : name) {
    if (isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

std::ostream& operator<<(std::ostream& out, const Pair& pair) { return out << NameOf(pair); }

std::vector<Pair> Pairs() {
  const char* wanted = getenv("MUSTER_MATRIX");
  std::vector<Pair> pairs;
  if (wanted == nullptr) {
    pairs.push_back({OpenSearchServer::DefaultDistribution(), "snapshot", ""});
    pairs.push_back({MUSTER_SNAPSHOTS "/elastic.tar.zst", "archive", ""});
    return pairs;
  }
  const std::vector<std::string> targets{"opensearch-2.19.6", "opensearch-3.6.0"};
  for (const char* source :
       {"elasticsearch-6.8.23", "elasticsearch-7.17.29", "elasticsearch-8.19.21",
        "opensearch-1.3.20", "opensearch-2.19.6", "opensearch-3.6.0"}) {
    for (const std::string& target : targets) {
      for (const char* way : {"live", "snapshot"}) pairs.push_back({source, way, target});
    }
  }
  for (const char* name : {"items-es17", "items-es24", "items-es56", "items-es62", "items-es68"}) {
    const std::string archive = MUSTER_FIXTURES "/snapshots/" + std::string(name) + ".tar.zst";
    if (!std::filesystem::exists(archive)) continue;
    for (const std::string& target : targets) pairs.push_back({archive, "archive", target});
  }
  return pairs;
}

class Matrix : public ::testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    for (const std::string& one : {GetParam().source, GetParam().target}) {
      if (one.empty() || one.ends_with(".zst")) continue;
      const std::string why = OpenSearchServer::Unavailable({.distribution = one});
      if (!why.empty()) GTEST_SKIP() << why;
    }
    prefix_ = UniqueName("m" + RealEnv().NewId().substr(0, 8));
  }
  void TearDown() override {
    if (!prefix_.empty()) MatrixContent::Remove(Target(), prefix_);
  }

  // Servers for all pairs: the targets, and the source of this pair.
  static OpenSearchServer& Target() {
    static std::map<std::string, std::unique_ptr<OpenSearchServer>> servers;
    const std::string& name = GetParam().target;
    if (name.empty()) return OpenSearchServer::Shared();
    auto& server = servers[name];
    if (!server) server = std::make_unique<OpenSearchServer>(OptionsOf(name));
    return *server;
  }
  static OpenSearchServer& Source() {
    static std::unique_ptr<OpenSearchServer> server;
    if (GetParam().target.empty()) return OpenSearchServer::Shared();
    if (!server || server->distribution() != GetParam().source) {
      server.reset();
      server = std::make_unique<OpenSearchServer>(OptionsOf(GetParam().source));
    }
    return *server;
  }
  static OpenSearchServer::Options OptionsOf(const std::string& distribution) {
    OpenSearchServer::Options options;
    options.distribution = distribution;
    return options;
  }

  static std::string UrlOf(const OpenSearchServer& server) {
    return "opensearch+http://127.0.0.1:" + std::to_string(server.port());
  }

  // Runs a command on this pair's own indices and expects success.
  std::string Run(std::vector<std::string> arguments) const {
    arguments.emplace_back("--progress=none");
    const Outcome outcome = RunMuster(arguments, files_.path());
    std::string command;
    for (const std::string& one : arguments) command += one + " ";
    EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.out << outcome.err;
    return outcome.out;
  }

  // Metadata, documents, and the comparison of both.
  void MigrateAll(const std::string& source) {
    const std::string target = UrlOf(Target());
    const std::string mine = prefix_ + "-*";
    Run({"metadata", "evaluate", source, target, "--include", mine});
    Run({"metadata", "migrate", source, target, "--include", mine});
    Run({"metadata", "migrate", source, target, "--include", mine});
    Run({"worker", "--store", "sqlite:work.db", "--run", "matrix", source, target, "--include",
         mine, "--documents-only", "--slots", "2"});
    const std::string report =
        Run({"--json", "verify", "--checksums", source, target, "--include", mine});
    const auto json = ParseJson(report, "report");
    ASSERT_TRUE(json) << report;
    EXPECT_TRUE((*json)["equal"]) << report;
    EXPECT_GT((*json)["metadata"].size(), 0U);
  }

  // Indices that have the names of someone else's: each gets the prefix, and is compared under it.
  void MigrateRenamed(const std::string& source) {
    const std::string target = UrlOf(Target());
    std::ofstream(files_ / "rename.js")
        << "(o) => o.kind === 'index' ? {...o, name: '" << prefix_ << "-' + o.name} : null";
    const std::string made =
        Run({"--json", "metadata", "migrate", source, target, "--rules", "rename.js"});
    std::ofstream transforms(files_ / "rename.yaml");
    transforms << "- rename_index:\n";
    int indices = 0;
    const auto report = ParseJson(made, "report");
    ASSERT_TRUE(report) << made;
    for (const Json& one : (*report)["objects"]) {
      if (one["kind"] != "index" || one["target"] == "") continue;
      ++indices;
      transforms << "    " << one["name"].get<std::string>() << ": "
                 << one["target"].get<std::string>() << "\n";
    }
    transforms.close();
    ASSERT_GT(indices, 0) << made;
    Run({"metadata", "diff", source, target, "--rules", "rename.js"});
    Run({"migrate", source, target, "--documents-only", "--transforms", "rename.yaml"});
    Run({"verify", "--checksums", source, target, "--transforms", "rename.yaml"});
  }

  Json Get(const std::string& path) const {
    return ParseJson(Target().Call("GET", path), path).value();
  }
  int Count(const std::string& index) const {
    Target().Call("POST", "/" + index + "/_refresh");
    return Get("/" + index + "/_count")["count"];
  }

  void CheckTarget(const MatrixContent& content) const {
    const std::string books = prefix_ + "-books";
    EXPECT_EQ(Count(books), 360);
    EXPECT_GT(Count(prefix_ + "-some"), 0);
    EXPECT_LT(Count(prefix_ + "-some"), 360) << "the alias has a filter";
    const Json about = Get("/" + books)[books];
    EXPECT_EQ(about["mappings"]["properties"]["authors"]["type"], "nested") << about;
    EXPECT_EQ(about["aliases"][prefix_ + "-write"]["is_write_index"], true) << about;
    EXPECT_EQ(Get("/_template/" + prefix_ + "-old").size(), 1U);
    EXPECT_EQ(Count(prefix_ + "-ice"), 2) << "frozen or not";
    if (content.has_policies()) {
      EXPECT_EQ(Count(prefix_ + "-aged"), 0);
    }
    if (!content.has_streams()) return;
    EXPECT_EQ(Count(prefix_ + "-logs"), 120);
    const Json streams = Get("/_data_stream/" + prefix_ + "-logs");
    EXPECT_EQ(streams["data_streams"].size(), 1U) << streams;
  }

  std::string prefix_;
  const TempFolder files_;
};

TEST_P(Matrix, EverythingArrives) {
  const Pair& pair = GetParam();
  if (pair.way == "archive") {
    const Outcome unpacked = RunCommand({"tar", "--zstd", "-xf", pair.source}, files_.path());
    ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
    const std::string name = std::filesystem::path(pair.source).stem().stem().string();
    const std::string source = "snapshot+file://" + files_.path() + "/" + name + "/repo";
    MigrateRenamed(source);
    return;
  }
  auto content = std::make_unique<MatrixContent>(Source(), prefix_);
  if (pair.way == "live") {
    MigrateAll(UrlOf(Source()));
    CheckTarget(*content);
    return;
  }
  const std::string folder = content->TakeSnapshot();
  // On one server: the source is gone, and only the snapshot is left.
  if (&Source() == &Target()) MatrixContent::Remove(Source(), prefix_);
  MigrateAll("snapshot+file://" + folder);
  CheckTarget(*content);
}

INSTANTIATE_TEST_SUITE_P(Pairs, Matrix, ::testing::ValuesIn(Pairs()),
                         [](const auto& pair) { return NameOf(pair.param); });

}  // namespace
}  // namespace muster::testing
