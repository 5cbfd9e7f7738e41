#include "replica/replica_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "core/yaml.h"
#include "replica/exec_projection.h"
#include "replica/set_records.h"
#include "replica/sql_projection.h"

namespace muster::replica {
namespace {

// The fields of one map, read by name; unread ones are errors.
class Fields {
 public:
  Fields(const YamlDocument& document, const YamlNode& node, std::string what)
      : document_(document), node_(node), what_(std::move(what)) {}

  const YamlNode* Find(std::string_view name) {
    asked_.insert(std::string(name));
    return node_.Find(name);
  }

  Status IsMap() const {
    if (node_.kind == YamlNode::Kind::kMap) return {};
    return document_.At(node_, what_ + " is not a map of fields");
  }

  Status NothingElse() const {
    for (const YamlEntry& entry : node_.entries) {
      if (asked_.contains(entry.key.text)) continue;
      std::string names;
      for (const std::string& name : asked_) names += (names.empty() ? "" : ", ") + name;
      return document_.At(
          entry.key, what_ + " has no field '" + entry.key.text + "'; expected one of: " + names);
    }
    return {};
  }

  Status Text(std::string_view name, std::string& value) {
    const YamlNode* node = Find(name);
    if (node == nullptr) return {};
    if (node->kind != YamlNode::Kind::kScalar || node->text.empty()) {
      return document_.At(*node, std::string(name) + " is not a text");
    }
    value = node->text;
    return {};
  }

  // As Text; "" means none.
  Status TextOrNone(std::string_view name, std::string& value) {
    const YamlNode* node = Find(name);
    if (node == nullptr || node->kind != YamlNode::Kind::kScalar) return Text(name, value);
    value = node->text;
    return {};
  }

  Status Needed(std::string_view name, std::string& value) {
    if (Find(name) == nullptr) return document_.At(node_, what_ + " has no " + std::string(name));
    return Text(name, value);
  }

  Status Number(std::string_view name, int low, int high, int& value) {
    const YamlNode* node = Find(name);
    if (node == nullptr) return {};
    const std::string& text = node->text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) {
      return {};
    }
    return document_.At(*node, std::string(name) + " is not a number from " + std::to_string(low) +
                                   " to " + std::to_string(high));
  }

  Status Duration(std::string_view name, milliseconds& value) {
    const YamlNode* node = Find(name);
    if (node == nullptr) return {};
    int64_t number = 0;
    const std::string& text = node->text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, text.data() + text.size());
    const int64_t factor = unit == "ms" ? 1 : unit == "s" ? 1'000 : unit == "m" ? 60'000 : 0;
    if (error != std::errc() || factor == 0 || number < 0 || number > 86'400'000 / factor) {
      return document_.At(*node, std::string(name) + " is not a time such as 250ms, 3s or 2m");
    }
    value = milliseconds(number * factor);
    return {};
  }

  // Rejects a timeout too short for anything to happen.
  Status Timeout(std::string_view name, milliseconds& value) {
    MUSTER_TRY(Duration(name, value));
    if (value.count() > 0) return {};
    return document_.At(*Find(name), std::string(name) + " must be greater than 0");
  }

  // One text or a list of them.
  Status Texts(std::string_view name, std::vector<std::string>& values) {
    const YamlNode* node = Find(name);
    if (node == nullptr) return {};
    return TextsOf(*node, name, values);
  }

  Status TextsOf(const YamlNode& node, std::string_view name, std::vector<std::string>& values) {
    values.clear();
    if (node.kind == YamlNode::Kind::kScalar) {
      values.push_back(node.text);
      return {};
    }
    if (node.kind != YamlNode::Kind::kSequence) {
      return document_.At(node, std::string(name) + " is neither a text nor a list of texts");
    }
    for (const YamlNode& item : node.items) {
      if (item.kind != YamlNode::Kind::kScalar) {
        return document_.At(item, std::string(name) + " holds something that is not a text");
      }
      values.push_back(item.text);
    }
    return {};
  }

 private:
  const YamlDocument& document_;
  const YamlNode& node_;
  const std::string what_;
  std::set<std::string> asked_;
};

Status ReadEvents(const YamlDocument& document, const YamlNode& node, ReplicaFile& file) {
  if (node.kind == YamlNode::Kind::kScalar) {
    file.events = node.text;
    return {};
  }
  Fields fields(document, node, "events");
  MUSTER_TRY(fields.IsMap());
  MUSTER_TRY(fields.Needed("url", file.events));
  MUSTER_TRY(fields.Number("slots", 1, events::kMaxSlots, file.event_options.slots));
  events::EventTable table;
  MUSTER_TRY(fields.Text("table", table.table));
  if (const YamlNode* columns = fields.Find("columns")) {
    Fields names(document, *columns, "columns");
    MUSTER_TRY(names.IsMap());
    MUSTER_TRY(names.Text("position", table.position));
    MUSTER_TRY(names.Texts("stream", table.stream));
    MUSTER_TRY(names.Text("version", table.version));
    MUSTER_TRY(names.Text("id", table.id));
    MUSTER_TRY(names.Text("type", table.type));
    MUSTER_TRY(names.Text("payload", table.payload));
    MUSTER_TRY(names.TextOrNone("metadata", table.metadata));
    MUSTER_TRY(names.TextOrNone("time", table.time));
    MUSTER_TRY(names.NothingElse());
    if (table.table.empty()) return document.At(*columns, "'columns' requires 'table'");
  }
  if (!table.table.empty()) file.event_options.table = table;
  return fields.NothingElse();
}

Result<std::shared_ptr<Projection>> ReadProjection(const YamlDocument& document,
                                                   const YamlEntry& entry, SqlDialect dialect,
                                                   Env& env) {
  const std::string& name = entry.key.text;
  if (auto checked = CheckReplicaName("projection", name); !checked) {
    return document.At(entry.key, checked.error().message);
  }
  Fields fields(document, entry.value, "projection '" + name + "'");
  MUSTER_TRY(fields.IsMap());
  const YamlNode* exec = fields.Find("exec");
  const YamlNode* on = fields.Find("on");
  if ((exec == nullptr) == (on == nullptr)) {
    return document.At(entry.value, "projection '" + name + "' has to have either 'on' or 'exec'");
  }
  if (exec != nullptr) {
    ExecProjectionSpec spec{.name = name, .command = {}};
    MUSTER_TRY(fields.Texts("exec", spec.command));
    MUSTER_TRY(fields.Timeout("timeout", spec.timeout));
    MUSTER_TRY(fields.NothingElse());
    const auto folder = std::filesystem::path(document.origin).parent_path();
    if (Status found = FindProgram(folder.string(), spec); !found) {
      return document.At(*exec, found.error().message);
    }
    auto made = NewExecProjection(spec, env);
    if (!made) return document.At(*exec, made.error().message);
    return made;
  }
  SqlProjectionSpec spec{.name = name};
  MUSTER_TRY(fields.Texts("tables", spec.tables));
  MUSTER_TRY(fields.Texts("setup", spec.setup));
  MUSTER_TRY(fields.Texts("clear", spec.clear));
  MUSTER_TRY(fields.NothingElse());
  if (on->kind != YamlNode::Kind::kMap) {
    return document.At(*on, "'on' is not a map from types of events to statements");
  }
  for (const YamlEntry& type : on->entries) {
    MUSTER_TRY(fields.TextsOf(type.value, "on " + type.key.text, spec.on[type.key.text]));
  }
  auto made = NewSqlProjection(spec, dialect);
  if (!made) {
    Error error = document.At(entry.value, made.error().message);
    error.hint = made.error().hint;
    return error;
  }
  return made;
}

// A table belongs to one projection: resetting, rebuilding or dropping it ignores other users.
Status CheckTables(const YamlDocument& document, const YamlNode& projections) {
  std::map<std::string, std::string> owners;
  for (const YamlEntry& entry : projections.entries) {
    const YamlNode* listed = entry.value.Find("tables");
    if (listed == nullptr) continue;
    std::vector<std::string> tables;
    MUSTER_TRY(Fields(document, entry.value, "").TextsOf(*listed, "tables", tables));
    for (const std::string& table : tables) {
      const auto [owner, fresh] = owners.try_emplace(table, entry.key.text);
      if (fresh) continue;
      return document.At(
          *listed, "table '" + table + "' is listed already by projection '" + owner->second + "'");
    }
  }
  return {};
}

Result<ReplicaFile> FromDocument(const YamlDocument& document, Env& env) {
  ReplicaFile file;
  Fields fields(document, document.root, "a replica set");
  MUSTER_TRY(fields.IsMap());
  MUSTER_TRY(fields.Needed("set", file.options.set));
  if (auto checked = CheckReplicaName("replica set", file.options.set); !checked) {
    return document.At(*fields.Find("set"), checked.error().message);
  }
  std::string store;
  MUSTER_TRY(fields.Text("store", store));
  if (!store.empty()) file.store = store;
  const YamlNode* events = fields.Find("events");
  if (events == nullptr) return document.At(document.root, "a replica set has no events");
  MUSTER_TRY(ReadEvents(document, *events, file));
  MUSTER_TRY(fields.Needed("read_model", file.read_model));
  std::string strategy(kStrategies.NameOf(Strategy::kRecreate));
  MUSTER_TRY(fields.Text("strategy", strategy));
  const auto known = kStrategies.Find(strategy);
  if (!known) {
    return document.At(*fields.Find("strategy"), "strategy is neither recreate nor incremental");
  }
  file.options.strategy = *known;
  MUSTER_TRY(fields.Number("batch", 1, events::kMaxEventBatch, file.options.batch));
  MUSTER_TRY(fields.Number("max_attempts", 1, 1000, file.options.max_attempts));
  MUSTER_TRY(fields.Duration("retry_delay", file.options.retry_delay));
  MUSTER_TRY(fields.Timeout("heartbeat", file.options.heartbeat_interval));
  MUSTER_TRY(fields.Timeout("heartbeat_timeout", file.options.heartbeat_timeout));
  MUSTER_TRY(fields.Timeout("barrier_timeout", file.options.barrier_timeout));
  MUSTER_TRY(fields.Timeout("handle_timeout", file.options.handle_timeout));
  MUSTER_TRY(fields.Duration("quiet", file.options.quiet));
  MUSTER_TRY(fields.Duration("quiet_most", file.options.quiet_most));
  if (file.options.heartbeat_timeout < file.options.heartbeat_interval * 2) {
    const YamlNode* given = fields.Find("heartbeat");
    return document.At(given != nullptr ? *given : *fields.Find("heartbeat_timeout"),
                       "heartbeat_timeout is less than twice the heartbeat");
  }
  const YamlNode* projections = fields.Find("projections");
  if (projections == nullptr || projections->kind != YamlNode::Kind::kMap ||
      projections->entries.empty()) {
    return document.At(projections == nullptr ? document.root : *projections,
                       "'projections' is not a map from names to projections");
  }
  const SqlDialect dialect =
      file.read_model.starts_with("sqlite:") ? SqlDialect::kSqlite : SqlDialect::kPostgres;
  MUSTER_TRY(CheckTables(document, *projections));
  for (const YamlEntry& entry : projections->entries) {
    MUSTER_ASSIGN(auto projection, ReadProjection(document, entry, dialect, env));
    file.projections.push_back(std::move(projection));
  }
  MUSTER_TRY(fields.NothingElse());
  return file;
}

}  // namespace

Result<std::shared_ptr<Projection>> ReplicaFile::Find(const std::string& name) const {
  std::string names;
  for (const auto& projection : projections) {
    if (projection->name() == name) return projection;
    names += (names.empty() ? "" : ", ") + projection->name();
  }
  return Error{Code::kInvalid, "replica set '" + options.set + "' has no projection '" + name + "'",
               "expected one of: " + names};
}

Result<ReplicaFile> ParseReplicaFile(std::string_view text, std::string_view origin, Env& env) {
  MUSTER_ASSIGN(const YamlDocument document, ParseYaml(text, origin));
  return FromDocument(document, env);
}

Result<ReplicaFile> ReadReplicaFile(const std::string& path, Env& env) {
  MUSTER_ASSIGN(const YamlDocument document, ReadYamlFile(path));
  return FromDocument(document, env);
}

}  // namespace muster::replica
