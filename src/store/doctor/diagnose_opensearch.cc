#include "store/doctor/diagnose_backends.h"
#include "store/opensearch/opensearch_clock.h"
#include "store/opensearch/opensearch_schema.h"

namespace muster::store {
namespace {

bool IsLocal(const std::string& base) {
  for (const char* host : {"http://127.", "http://localhost", "http://[::1]"}) {
    if (base.starts_with(host)) return true;
  }
  return false;
}

void DiagnoseTls(const net::OpenSearchEndpoint& endpoint, Findings& findings) {
  if (endpoint.base_url.starts_with("https:")) {
    findings.Ok("tls", "encrypted, and the server was verified");
  } else if (IsLocal(endpoint.base_url)) {
    findings.Ok("tls", "not encrypted, but does not leave this machine");
  } else {
    findings.Warn("tls", "the connection is not encrypted",
                  "use opensearch+https://, with ?ca=PATH for your own CA");
  }
}

// Leases depend on it, so its accuracy matters.
bool DiagnoseTime(OpenSearchCluster& client, Env& env, bool exists, Findings& findings) {
  OpenSearchClock clock(client, env);
  const WallTime asked = env.WallNow();
  const auto reading = clock.Read();
  if (!reading) {
    findings.Fail("time", reading.error());
    return false;
  }
  const std::string known =
      "the cluster's time is known to " + std::to_string(reading->error.count()) + " ms";
  if (reading->error > std::chrono::milliseconds(250)) {
    findings.Warn("time", known + ", which delays taking over leases",
                  "allow cluster:monitor/nodes/stats, or run muster closer to the cluster");
  } else {
    findings.Ok("time", known);
  }
  // An existing store is used below, and its clock compared there.
  if (!exists) DiagnoseClock(asked, reading->now, env.WallNow(), findings);
  return true;
}

void DiagnoseSettings(const OpenSearchIndex& index, Findings& findings) {
  const std::string change = "PUT " + index.name + "/_settings ";
  if (index.blocked) {
    return findings.Fail(
        "settings", {Code::kReadOnly, "index " + index.name + " rejects writes",
                     "free disk space in the cluster if it is low; then, if the block stays, " +
                         change + R"({"index.blocks": null})"});
  }
  if (!index.durability.empty() && index.durability != "request") {
    findings.Warn("settings",
                  "translog.durability is " + index.durability +
                      ": what was reported as done may be lost when a node fails",
                  change + R"({"index.translog.durability": "request"})");
  } else if (index.refresh_interval != "-1") {
    findings.Warn("settings",
                  "refresh_interval is " + index.refresh_interval + ": an idle store costs work",
                  change + R"({"index.refresh_interval": "-1"})");
  } else {
    findings.Ok("settings", index.shards + " shard, durable, refreshed on request only");
  }
  if (index.replicas == "0") {
    findings.Warn("replicas", "the store has no replica: if its node is lost, so are its records",
                  "add a second data node: a replica is then created automatically");
  } else {
    findings.Ok("replicas", index.replicas + " besides the primary");
  }
}

void DiagnoseHealth(OpenSearchCluster& client, const OpenSearchIndex& index, Findings& findings) {
  const auto health = client.Call({.target = "/_cluster/health/" + index.name + "?timeout=2s"});
  if (!health) return;  // optional: not every user may read it
  const std::string status = TextIn(*health, "status");
  if (status == "red") {
    findings.Fail("health", {Code::kUnavailable, "index " + index.name + " is red: a shard is lost",
                             "bring its node back, or see GET _cluster/allocation/explain"});
  } else if (status == "yellow") {
    findings.Warn("health", "index " + index.name + " is yellow: a replica is missing",
                  "see GET _cluster/allocation/explain");
  } else {
    findings.Ok("health", "index " + index.name + " is " + status);
  }
}

// What claims need beyond reading and writing, which the probe tries.
void DiagnosePrivileges(OpenSearchCluster& client, const OpenSearchIndex& index,
                        Findings& findings) {
  const auto refresh = client.Call({.method = "POST", .target = "/" + index.alias + "/_refresh"});
  if (!refresh) return findings.Fail("privileges", refresh.error());
  const auto search = client.Call(
      {.method = "POST", .target = "/" + index.alias + "/_search", .body = R"({"size":0})"});
  if (!search) return findings.Fail("privileges", search.error());
  const auto stats = client.Call({.target = "/" + index.alias + "/_stats/docs?level=shards"});
  if (!stats) {
    return findings.Warn("privileges",
                         "may not read the index's statistics: " + stats.error().message,
                         "allow indices:monitor/stats, so that waiting workers notice work sooner");
  }
  findings.Ok("privileges", "may search, refresh and watch the index");
}

}  // namespace

bool DiagnoseOpenSearch(const StoreUrl& url, Env& env, Findings& findings) {
  OpenSearchCluster client(url.opensearch, env);
  const auto server = ReadOpenSearchServer(client);
  if (!server) {
    findings.Fail("connect", server.error());
    return false;
  }
  findings.Ok("connect", url.opensearch.base_url + " answers");
  findings.Ok("version", server->distribution + " " + server->version);
  DiagnoseTls(url.opensearch, findings);
  const auto index = FindOpenSearchIndex(client, url.space);
  if (!index) {
    findings.Fail("schema", index.error());
    return false;
  }
  if (!DiagnoseTime(client, env, index->has_value(), findings)) return false;
  const std::string space = "namespace '" + url.space + "'";
  if (!*index) {
    findings.Ok("schema", space + " does not exist yet: the first use creates it");
    return false;
  }
  findings.Ok("schema", space + " has version " + std::to_string((*index)->schema_version));
  DiagnoseSettings(**index, findings);
  DiagnoseHealth(client, **index, findings);
  DiagnosePrivileges(client, **index, findings);
  return true;
}

}  // namespace muster::store
