#include "pipeline/opensearch/opensearch_global.h"

#include <string>

#include "core/json_fields.h"
#include "pipeline/opensearch/opensearch_requests.h"
#include "pipeline/opensearch/opensearch_target.h"

namespace muster::pipeline {
namespace {

class Collector {
 public:
  Collector(net::OpenSearchClient& client, Env& env, Json& metadata)
      : client_(client), env_(env), metadata_(metadata) {}

  // [{"name", "index_template" or "component_template": …}] → {name: template}
  Status AddList(const std::string& kind, const std::string& member, const std::string& path) {
    MUSTER_ASSIGN(const Json answer, AskFor(kind, path));
    for (const Json& entry : MemberIn(answer, kind)) {
      const std::string name = TextIn(entry, "name");
      const Json& body = member.empty() ? entry : MemberIn(entry, member);
      if (!name.empty() && body.is_object()) metadata_[kind][name] = body;
    }
    return {};
  }

  Status AddMap(const std::string& kind, const std::string& path) {
    MUSTER_ASSIGN(const Json answer, AskFor(kind, path));
    for (const auto& [name, body] : answer.items()) {
      if (body.is_object()) metadata_[kind][name] = body;
    }
    return {};
  }

  // Hidden indices are read only by name, stores not at all. Old versions have neither.
  void AddLeftOut() {
    const auto answer = AskForJson(client_, env_,
                                   {.path = "/*?expand_wildcards=open,closed,hidden&filter_path="
                                            "*.settings.index.hidden,*.mappings._meta"});
    if (!answer || !answer->is_object()) return;
    for (const auto& [name, about] : answer->items()) {
      if (IsOurStore(about)) {
        metadata_["stores"].push_back(name);
        continue;
      }
      const Json& settings = MemberIn(MemberIn(about, "settings"), "index");
      if (!name.starts_with('.') && TextIn(settings, "hidden") == "true") {
        metadata_["hidden"].push_back(name);
      }
    }
  }

 private:
  // Objects of one kind; null: the cluster has no such kind, or the user may not see them.
  Result<Json> AskFor(const std::string& kind, const std::string& path) {
    auto answer = AskForJson(client_, env_, {.path = path});
    if (answer) return *std::move(answer);
    const Error& error = answer.error();
    if (IsTransient(error.code)) return error;
    if (error.code == Code::kPermission && !metadata::IsNoSuchApi(error)) {
      metadata_["unreadable"][kind] = error.ToString();
    }
    return Json();
  }

  net::OpenSearchClient& client_;
  Env& env_;
  Json& metadata_;
};

Status AddTemplates(Collector& collector) {
  MUSTER_TRY(collector.AddList("index_templates", "index_template", "/_index_template"));
  return collector.AddList("component_templates", "component_template", "/_component_template");
}

}  // namespace

Result<Json> GlobalMetadataOf(net::OpenSearchClient& client, Env& env,
                              const metadata::ClusterVersion& version, bool is_whole) {
  Json metadata{{"cluster_version", version.ToString()}};
  Collector collector(client, env, metadata);
  MUSTER_TRY(AddTemplates(collector));
  MUSTER_TRY(collector.AddList("data_streams", "", "/_data_stream"));
  MUSTER_TRY(collector.AddMap("templates", "/_template"));
  MUSTER_TRY(collector.AddMap("pipelines", "/_ingest/pipeline"));
  if (version.engine == metadata::Engine::kElasticsearch) {
    MUSTER_TRY(collector.AddMap("policies", "/_ilm/policy"));
  }
  if (is_whole) collector.AddLeftOut();
  return metadata;
}

Result<Json> TemplatesOf(net::OpenSearchClient& client, Env& env) {
  Json metadata = Json::object();
  Collector collector(client, env, metadata);
  MUSTER_TRY(AddTemplates(collector));
  return metadata;
}

}  // namespace muster::pipeline
