#include "pipeline/opensearch/opensearch_metadata.h"

#include <algorithm>
#include <utility>

#include "core/json_fields.h"
#include "core/log.h"
#include "pipeline/opensearch/opensearch_requests.h"

namespace muster::pipeline {
namespace {

using metadata::Kind;
using metadata::Object;
using metadata::Verdict;

metadata::ClusterVersion VersionIn(const Json& metadata) {
  return metadata::ClusterVersion::Parse(TextIn(metadata, "cluster_version"));
}

// Whether a collection's metadata is that of an index of a search cluster.
bool IsOfIndex(const Json& metadata) {
  return metadata.is_object() && (metadata.contains("mappings") || metadata.contains("settings"));
}

// "create index orders with {…}; string fields become text: title"
TargetChange Creation(const Object& object, const std::string& words, const Json& body,
                      const std::string& detail) {
  return {object.name, "create " + words + " " + object.name + " with " + ToJsonText(body) +
                           (detail.empty() ? "" : "; " + detail)};
}

std::string WordsFor(Kind kind) {
  std::string words(metadata::kKinds.NameOf(kind));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

void AddDropped(const std::vector<std::string>& names, std::string& detail) {
  for (const std::string& name : names) {
    detail += (detail.empty() ? "" : "; ") + ("the cluster does not know setting " + name);
  }
}

}  // namespace

OpenSearchMetadata::OpenSearchMetadata(net::OpenSearchClient& client, Env& env)
    : client_(client), env_(env) {}
OpenSearchMetadata::~OpenSearchMetadata() = default;

Result<OpenSearchMetadata::Adapter*> OpenSearchMetadata::TheAdapter() {
  const MutexLock lock(mutex_);
  if (adapter_ == nullptr) {
    MUSTER_ASSIGN(metadata::RuleSet rules, metadata::RuleSet::BuiltIn());
    MUSTER_ASSIGN(metadata::ClusterVersion version, metadata::VersionOf(client_));
    adapter_ = std::make_unique<Adapter>(
        Adapter{std::move(rules), metadata::Target(client_, env_, version)});
  }
  return adapter_.get();
}

Result<std::vector<TargetChange>> OpenSearchMetadata::CreateIndex(const std::string& name,
                                                                  const Json& metadata,
                                                                  bool evaluate) {
  MUSTER_ASSIGN(Adapter * adapter, TheAdapter());
  const Object object{Kind::kIndex, name, metadata};
  Verdict verdict =
      adapter->rules.Apply(object, {VersionIn(metadata), adapter->target.version()}, {});
  const std::string what = "cannot create index " + name;
  if (!verdict.IsKept()) {
    return Error{Code::kInvalid, what + ": " + verdict.Detail(),
                 "create it first, with rules of your own: 'muster metadata migrate --rules FILE'"};
  }
  MUSTER_ASSIGN(const std::string kept, KeepAliasesOfThisCluster(metadata, verdict.body));
  std::string detail = verdict.Detail();
  if (evaluate && IsOfIndex(metadata)) {
    MUSTER_ASSIGN(const auto harmful,
                  metadata::HarmfulTemplates(adapter->target, name, verdict.body));
    const Status fits = metadata::CheckTemplates(name, harmful);
    if (!fits) return fits.error().Within(what);
  } else if (!evaluate) {
    const auto created = Create(*adapter, name, metadata, verdict.body);
    // Created concurrently: fine.
    if (!created && created.error().code != Code::kConflict) return created.error().Within(what);
    if (created) AddDropped(created->dropped, detail);
  }
  TargetChange change = Creation(object, "index", verdict.body, detail);
  change.change += kept;
  return std::vector<TargetChange>{std::move(change)};
}

Result<std::vector<TargetChange>> OpenSearchMetadata::CreateStream(const std::string& name,
                                                                   const Json& metadata,
                                                                   bool evaluate) {
  MUSTER_ASSIGN(Adapter * adapter, TheAdapter());
  const metadata::Versions versions{VersionIn(metadata), adapter->target.version()};
  const auto made =
      metadata::CreateStream(adapter->target, adapter->rules, versions, name, metadata, evaluate);
  std::vector<TargetChange> changes;
  if (!made && made.error().code != Code::kConflict) {
    return made.error().Within("cannot create data stream " + name);
  }
  // Otherwise it was created concurrently: fine.
  if (made) {
    for (const std::string& one : *made) changes.push_back({name, one});
  }
  return changes;
}

// Of other sources, templates of the cluster are what says how documents are indexed.
Result<metadata::CreatedIndex> OpenSearchMetadata::Create(Adapter& adapter, const std::string& name,
                                                          const Json& metadata, const Json& body) {
  metadata::CreatedIndex created;
  if (!IsOfIndex(metadata)) {
    MUSTER_ASSIGN(created.dropped, adapter.target.Create(Kind::kIndex, name, body));
    return created;
  }
  MUSTER_ASSIGN(created, metadata::CreateIndex(adapter.target, adapter.rules, name, body));
  if (!created.added.empty()) {
    Log(Level::kWarning, "templates of the target add to an index what the source's does not have",
        {{"index", name}, {"added", metadata::Joined(created.added)}});
  }
  return created;
}

Status OpenSearchMetadata::WarnAbout(const std::string& name, const Json& metadata) {
  if (!IsOfIndex(metadata)) return {};
  MUSTER_ASSIGN(Adapter * adapter, TheAdapter());
  const metadata::Versions versions{VersionIn(metadata), adapter->target.version()};
  const Verdict wanted = adapter->rules.Apply({Kind::kIndex, name, metadata}, versions, {});
  if (!wanted.IsKept()) return {};
  const auto found = adapter->target.Find(Kind::kIndex, name);
  if (!found && !metadata::IsRefusal(found.error())) return found.error();
  if (!found || !*found) return {};
  const auto additions =
      metadata::AdditionsTo(wanted.body, **found, adapter->rules, adapter->target.version());
  if (additions.harmful.empty()) return {};
  Log(Level::kWarning,
      "an index of the target has what the source's does not have: documents may lose fields, be "
      "changed or be refused",
      {{"index", name}, {"it_has", metadata::Joined(additions.harmful)}});
  return {};
}

Result<std::vector<TargetChange>> OpenSearchMetadata::CreateTemplates(const Json& metadata,
                                                                      bool evaluate) {
  MUSTER_ASSIGN(Adapter * adapter, TheAdapter());
  std::vector<TargetChange> changes;
  const metadata::Versions versions{VersionIn(metadata), adapter->target.version()};
  for (const metadata::SourceObject& one : metadata::GlobalObjects(metadata, false)) {
    const Kind kind = one.object.kind;
    if (!metadata::HasContent(kind) || kind == Kind::kIndex || one.is_unknown) continue;
    const Verdict verdict = adapter->rules.Apply(one.object, versions, {});
    if (verdict.outcome == metadata::Outcome::kLeftOut) continue;
    auto made = CreateTemplate(adapter->target, one.object, verdict, evaluate);
    if (!made && !metadata::IsRefusal(made.error())) return made.error();
    if (made) {
      std::move(made->begin(), made->end(), std::back_inserter(changes));
      continue;
    }
    const std::string words = WordsFor(kind) + " " + one.object.name + " is not created: ";
    changes.push_back({one.object.name, words + made.error().ToString()});
    Log(Level::kWarning, "a template is not created",
        {{"template", one.object.name}, {"error", made.error().ToString()}});
  }
  return changes;
}

Result<std::vector<TargetChange>> OpenSearchMetadata::CreateTemplate(metadata::Target& target,
                                                                     const Object& object,
                                                                     const Verdict& verdict,
                                                                     bool evaluate) {
  if (!verdict.IsKept()) return Error{Code::kInvalid, verdict.Detail()};
  MUSTER_ASSIGN(const auto found, target.Find(object.kind, object.name));
  if (found) return std::vector<TargetChange>{};
  std::string detail = verdict.Detail();
  if (!evaluate) {
    const auto dropped = target.Create(object.kind, object.name, verdict.body);
    if (!dropped && dropped.error().code != Code::kConflict) return dropped.error();
    if (dropped) AddDropped(*dropped, detail);
  }
  return std::vector<TargetChange>{Creation(object, WordsFor(object.kind), verdict.body, detail)};
}

// An alias of an index on this same cluster stays with that index: with two of them, writes by the
// alias fail, and searches by it find everything twice. Returns what to report.
Result<std::string> OpenSearchMetadata::KeepAliasesOfThisCluster(const Json& metadata,
                                                                 Json& index) {
  const std::string source = TextIn(metadata, "cluster_uuid");
  if (source.empty() || !index.contains("aliases")) return std::string();
  MUSTER_ASSIGN(const Json about, AboutCluster(client_, env_));
  MUSTER_ASSIGN(const std::string here, ClusterUuidIn(client_, about));
  if (here != source) return std::string();
  std::string names;
  for (const auto& [name, options] : index["aliases"].items()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  index.erase("aliases");
  return "; not its aliases (" + names + "), which stay with the source on the same cluster";
}

}  // namespace muster::pipeline
