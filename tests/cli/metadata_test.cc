// `muster metadata` from an old cluster, as far as its metadata goes, to a real one.

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "cli/program.h"
#include "core/json.h"
#include "support/http_server.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

class MetadataCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = OpenSearchServer::Unavailable();
    if (!reason.empty()) GTEST_SKIP() << "OpenSearch is not available: " << reason;
    name_ = UniqueName("metadata-" + RealEnv().NewId().substr(0, 8));
  }

  void TearDown() override {
    if (name_.empty()) return;
    for (const char* kind : {"/_index_template/", "/_template/", "/_component_template/"}) {
      try {
        Server().Call("DELETE", kind + name_ + "*");
      } catch (const std::runtime_error&) {
      }
    }
  }

  static OpenSearchServer& Server() { return OpenSearchServer::Shared(); }

  // What Elasticsearch 5.6 has, in this test.
  HttpServerReply Old(const HttpServerRequest& request) const {
    const auto has = [&](const char* part) {
      return request.target.find(part) != std::string::npos;
    };
    if (request.target == "/") {
      return Answer(200, R"({"cluster_uuid":"old","version":{"number":"5.6.16"}})");
    }
    if (has("expand_wildcards=closed")) {
      return Answer(200, R"({")" + name_ + R"(-closed":{}})");
    }
    if (has("expand_wildcards=open")) return Answer(200, Indices());
    if (has("/_template")) return Answer(200, Templates());
    return Answer(404, R"({"error":{"type":"x","reason":"y"}})");
  }

  std::string Indices() const {
    return R"({")" + name_ + R"(-books":{"aliases":{")" + name_ +
           R"(-alias":{"filter":{"term":{"t":"x"}},"index_routing":"7"}},"mappings":{"book":{
             "_all":{"enabled":false},"properties":{"t":{"type":"keyword","include_in_all":false}}}},
             "settings":{"index":{"number_of_shards":"1","number_of_replicas":"0","strange":"1","uuid":"u"}}},")" +
           name_ + R"(-split":{"mappings":{"a":{"properties":{"x":{"type":"long"}}},
             "b":{"properties":{"x":{"type":"date"}}}}}})";
  }

  std::string Templates() const {
    return R"({")" + name_ + R"(-t":{"template":")" + name_ +
           R"(-b*","order":3,"mappings":{"_default_":{"_all":{"enabled":false},"_source":{"excludes":["x"]}}},"settings":{},"aliases":{}},
             ".watches":{"template":".watches*"},")" +
           name_ + R"(-unrelated":{"template":"zzz*","mappings":{}}})";
  }

  // KIND NAME (without the test's own prefix) → [outcome, reason and changes].
  std::map<std::string, std::string> Run(int exit_code, std::vector<std::string> arguments) {
    const std::vector<std::string> start = {"metadata", "--json", "--progress=none"};
    arguments.insert(arguments.begin(), start.begin(), start.end());
    arguments.push_back("opensearch+" + old_.Url());
    arguments.push_back(TargetUrl());
    const Outcome outcome = RunMuster(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.out << outcome.err;
    std::map<std::string, std::string> report;
    const Json json = Json::parse(outcome.out, nullptr, false);
    for (const Json& one : json["objects"]) {
      std::string name = one["name"].get<std::string>();
      if (name.starts_with(name_)) name = name.substr(name_.size() + 1);
      report[one["kind"].get<std::string>() + " " + name] =
          one["outcome"].get<std::string>() + ": " + one["reason"].get<std::string>() +
          ToJsonText(one["changes"]);
    }
    return report;
  }

  static std::string TargetUrl() {
    return "opensearch+http://127.0.0.1:" + std::to_string(Server().port());
  }

  static Json Get(const std::string& path) {
    return ParseJson(Server().Call("GET", path), path).value();
  }

  std::string name_;
  HttpServer old_{[this](const HttpServerRequest& request) { return Old(request); }};
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(MetadataCommand, EvaluateTriesEverythingAndKeepsNothing) {
  auto report = Run(4, {"evaluate", "--sample", "0"});
  EXPECT_TRUE(Has(report["index books"], "changed: ")) << report["index books"];
  EXPECT_TRUE(Has(report["index books"], "does not know are dropped: index.strange"));
  EXPECT_TRUE(Has(report["index split"], "refused: ")) << report["index split"];
  EXPECT_TRUE(Has(report["index closed"], "left out: ")) << report["index closed"];
  EXPECT_TRUE(Has(report["index closed"], "is closed")) << report["index closed"];
  EXPECT_TRUE(Has(report["template t"], "changed: ")) << report["template t"];
  EXPECT_TRUE(Has(report["template .watches"], "left out: it belongs to the system"));
  EXPECT_EQ(report.size(), 6U);
  EXPECT_TRUE(Get("/" + name_ + "*").empty());
  EXPECT_TRUE(Get("/muster-evaluate-*").empty());
  EXPECT_THROW(Get("/_template/" + name_ + "-t"), std::runtime_error);
}

TEST_F(MetadataCommand, MigrateCreatesWhatIsMissingOnce) {
  auto report = Run(4, {"migrate", "--replicas", "1"});
  EXPECT_TRUE(Has(report["index books"], "changed: ")) << report["index books"];
  EXPECT_TRUE(Has(report["index split"], "refused: "));
  const Json books = Get("/" + name_ + "-books")[name_ + "-books"];
  EXPECT_EQ(books["mappings"]["properties"]["t"]["type"], "keyword") << books;
  EXPECT_EQ(books["settings"]["index"]["number_of_replicas"], "1");
  const Json& alias = books["aliases"][name_ + "-alias"];
  EXPECT_EQ(alias["index_routing"], "7") << books;
  EXPECT_EQ(alias["filter"]["term"]["t"], "x") << books;
  EXPECT_EQ(Get("/_template/" + name_ + "-t")[name_ + "-t"]["order"], 3);
  EXPECT_FALSE(books["mappings"].contains("_source")) << "the template is newer: " << books;

  report = Run(0, {"migrate", "--replicas", "1", "--exclude", "*-split"});
  EXPECT_EQ(report.count("index split"), 0U);
  EXPECT_TRUE(Has(report["index books"], "ok: already there")) << report["index books"];
  EXPECT_TRUE(Has(report["template t"], "ok: already there")) << report["template t"];
  EXPECT_TRUE(Has(report["template unrelated"], "left out: no selected index needs it"));
  report = Run(4, {"migrate", "--replicas", "0", "--exclude", "*-split"});
  EXPECT_TRUE(Has(report["index books"], "different: settings index.number_of_replicas: 1, not 0"))
      << report["index books"];
}

TEST_F(MetadataCommand, AnIndexThatTemplatesOfTheTargetWouldChangeIsRefused) {
  Server().Call("PUT", "/_index_template/" + name_ + "-there",
                R"({"index_patterns":[")" + name_ +
                    R"(-books"],"priority":400,"template":{"mappings":{"dynamic":"strict"}}})");
  for (const char* action : {"evaluate", "migrate"}) {
    auto report = Run(4, {action, "--include", "*-books"});
    EXPECT_TRUE(Has(report["index books"], "refused: templates of the target give index "))
        << report["index books"];
    EXPECT_TRUE(Has(report["index books"], "mappings dynamic: strict")) << report["index books"];
  }
  EXPECT_TRUE(Get("/" + name_ + "*").empty());
}

TEST_F(MetadataCommand, DiffNamesWhatDiffers) {
  auto report = Run(1, {"diff", "--include", "*-books"});
  EXPECT_TRUE(Has(report["index books"], "different: missing in the target"));
  TempFolder folder;
  const std::string rules = folder / "rules.yaml";
  std::ofstream(rules) << "rules: [{why: not ours, at: settings, remove: index.strange}]";
  Run(0, {"migrate", "--rules", rules, "--include", "*-books"});
  report = Run(0, {"diff", "--rules", rules, "--include", "*-books"});
  EXPECT_TRUE(Has(report["index books"], "ok: already there")) << report["index books"];
  Server().Call("PUT", "/" + name_ + "-books/_mapping",
                R"({"properties":{"new":{"type":"long"}}})");
  report = Run(1, {"diff", "--rules", rules, "--include", "*-books"});
  EXPECT_TRUE(Has(report["index books"], "mappings properties.new.type: only in the target"));
  report = Run(0, {"migrate", "--rules", rules, "--include", "*-books"});
  EXPECT_TRUE(Has(report["index books"], "ok: already there")) << "documents may add fields";
}

TEST_F(MetadataCommand, SampledDocumentsAreHeldAgainstTheMappingThatIsThere) {
  const std::string index = name_ + "-numbers";
  Server().Call("PUT", "/" + index, R"({"mappings":{"dynamic":false}})");
  Server().Call("POST", "/" + index + "/_doc?refresh", R"({"n":"not a number"})");
  const std::string folder = Server().RepositoryFolder() + "/" + name_;
  Server().Call("PUT", "/_snapshot/" + name_,
                R"({"type":"fs","settings":{"location":")" + folder + R"("}})");
  Server().Call("PUT", "/_snapshot/" + name_ + "/s?wait_for_completion=true",
                R"({"indices":")" + index + R"("})");
  Server().Call("DELETE", "/_snapshot/" + name_);
  const auto evaluate = [&] {
    return RunMuster({"metadata", "evaluate", "snapshot+file://" + folder + "#" + index,
                      TargetUrl(), "--progress=none"});
  };
  Outcome outcome = evaluate();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "already there")) << outcome.out;
  Server().Call("DELETE", "/" + index);
  Server().Call("PUT", "/" + index, R"({"mappings":{"properties":{"n":{"type":"long"}}}})");
  outcome = evaluate();
  EXPECT_EQ(outcome.exit_code, 4) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "1 of 1 sampled documents do not fit its mapping")) << outcome.out;
  EXPECT_TRUE(Get("/muster-evaluate-*").empty());
}

TEST_F(MetadataCommand, VerifyComparesMetadataToo) {
  const std::string index = name_ + "-verified";
  Server().Call("PUT", "/" + index, R"({"mappings":{"properties":{"n":{"type":"long"}}}})");
  Server().Call("POST", "/" + index + "/_doc?refresh", R"({"n":1})");
  const std::string folder = Server().RepositoryFolder() + "/" + name_;
  Server().Call("PUT", "/_snapshot/" + name_,
                R"({"type":"fs","settings":{"location":")" + folder + R"("}})");
  Server().Call("PUT", "/_snapshot/" + name_ + "/s?wait_for_completion=true",
                R"({"indices":")" + index + R"("})");
  Server().Call("DELETE", "/_snapshot/" + name_);
  TempFolder files;
  const auto verify = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "verify",       "--checksums",     "snapshot+file://" + folder + "#" + index,
        TargetUrl(),    "--progress=none", "--state",
        files / "state"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunMuster(arguments);
  };
  Outcome outcome = verify({});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "Metadata: 0 of ")) << outcome.out;
  Server().Call("PUT", "/" + index + "/_alias/" + name_ + "-other");
  outcome = verify({});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "Metadata: 1 of ")) << outcome.out;
  EXPECT_TRUE(Has(outcome.out, "aliases " + name_ + "-other: only in the target")) << outcome.out;
  const Json json = ParseJson(verify({"--json"}).out, "report").value();
  EXPECT_FALSE(json["equal"]);
  EXPECT_TRUE(json["collections"][0]["equal"]);
  EXPECT_GT(json["metadata"].size(), 0U);
  EXPECT_EQ(verify({"--documents-only"}).exit_code, 0);
  EXPECT_EQ(RunMuster({"verify", "snapshot+file://" + folder + "#" + index,
                       TargetUrl() + "/" + index, "--progress=none"})
                .exit_code,
            0)
      << "a single index may have another name";
  Server().Call("DELETE", "/" + index);
}

// The sample is sent as a migration would send it.
TEST_F(MetadataCommand, SampledDocumentsHaveTheRoutingThatTheirMappingDemands) {
  const std::string index = name_ + "-routed";
  Server().Call("PUT", "/" + index, R"({"mappings":{"_routing":{"required":true}}})");
  Server().Call("PUT", "/" + index + "/_doc/1?routing=north&refresh", R"({"n":1})");
  const Outcome outcome = RunMuster(
      {"metadata", "evaluate", TargetUrl() + "/" + index, TargetUrl(), "--progress=none"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "already there")) << outcome.out;
  Server().Call("DELETE", "/" + index);
}

TEST_F(MetadataCommand, SelectingNothingIsNothingToDo) {
  for (const char* action : {"evaluate", "migrate", "diff"}) {
    Run(3, {action, "--include", "no-such-*"});
    const Outcome outcome = RunMuster({"metadata", action, "opensearch+" + old_.Url(), TargetUrl(),
                                       "--include", "no-such-*", "--progress=none"});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
    EXPECT_TRUE(Has(outcome.out, "no index or data stream has such a name")) << outcome.out;
  }
}

TEST_F(MetadataCommand, ScriptRenames) {
  TempFolder folder;
  const std::string rules = folder / "rename.js";
  std::ofstream(rules) << "(o) => o.kind === 'index' ? {...o, name: o.name + '-2'} : o";
  auto report = Run(0, {"migrate", "--rules", rules, "--include", "*-books"});
  EXPECT_TRUE(Has(report["index books"], "renamed to " + name_ + "-books-2"))
      << report["index books"];
  EXPECT_FALSE(Get("/" + name_ + "-books-2").empty());
  EXPECT_THROW(Get("/" + name_ + "-books"), std::runtime_error);
}

TEST_F(MetadataCommand, DocumentsAloneNeedTheirTargets) {
  TempFolder folder;
  const std::string file = folder / (name_ + "-lines.jsonl");
  std::ofstream(file) << "{\"a\":1}\n";
  const auto migrate = [&] {
    return RunMuster(
        {"migrate", "jsonl:" + file, TargetUrl(), "--documents-only", "--progress=none"});
  };
  EXPECT_EQ(NotAClearError(migrate(), 1), "");
  EXPECT_TRUE(Get("/" + name_ + "*").empty());
  Server().Call("PUT", "/" + name_ + "-lines");
  const Outcome outcome = migrate();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(MetadataCommand, MistakesAreClear) {
  const std::string from = "opensearch+" + old_.Url();
  EXPECT_EQ(NotAClearError(RunMuster({"metadata", "migrate", "jsonl:x.jsonl", TargetUrl()}), 2),
            "");
  EXPECT_EQ(NotAClearError(RunMuster({"metadata", "migrate", from, "sqlite:a.db"}), 2), "");
  EXPECT_EQ(NotAClearError(RunMuster({"metadata", "migrate", from, TargetUrl() + "/books"}), 2),
            "");
  EXPECT_EQ(NotAClearError(RunMuster({"metadata", "diff", from, TargetUrl(), "--sample", "3"}), 2),
            "");
  EXPECT_EQ(
      NotAClearError(RunMuster({"metadata", "migrate", from, "opensearch+http://127.0.0.1:1"}), 5),
      "");
}

}  // namespace
}  // namespace muster::testing
