#include "cli/snapshot_create.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "cli/exit_codes.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/snapshot_indices.h"
#include "cli/snapshot_repository.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "core/backoff.h"
#include "core/enum_names.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/url.h"
#include "net/opensearch.h"

namespace muster::cli {
namespace {

using namespace std::chrono_literals;

constexpr Backoff::Pauses kPauses{.first = 200ms, .longest = 2s};  // between two looks
// A cluster that fails for so long may have lost the snapshot.
constexpr std::chrono::minutes kPatience{5};
constexpr size_t kMostFailures = 20;

// With a pattern the cluster would answer about other snapshots.
Status CheckName(const std::string& what, const std::string& name) {
  if (!name.empty() && name != "_all" && name.find_first_of("*,?/\\ ") == std::string::npos) {
    return {};
  }
  return Error{Code::kInvalid, "'" + name + "' is not a name for a " + what,
               "use lower-case letters, digits, - and _"};
}

std::string Megabytes(int64_t bytes) { return Fixed(static_cast<double>(bytes) / 1e6, 1); }

enum class SnapshotState { kRunning, kSuccess, kPartial, kFailed };

// As clusters name them.
constexpr EnumNames<SnapshotState, 5> kSnapshotStates{{{
    {SnapshotState::kRunning, "IN_PROGRESS"},
    {SnapshotState::kRunning, "STARTED"},
    {SnapshotState::kSuccess, "SUCCESS"},
    {SnapshotState::kPartial, "PARTIAL"},
    {SnapshotState::kFailed, "FAILED"},
}}};

// A snapshot's state, from GET /_snapshot/REPOSITORY/NAME.
struct SnapshotInfo {
  struct Failure {
    std::string index;
    int64_t shard = 0;
    std::string reason;
  };
  SnapshotState state = SnapshotState::kFailed;  // also one that is unknown
  std::string state_name = {};                   // for display
  std::vector<std::string> indices = {};
  int64_t shards = 0;
  int64_t failed = 0;
  int64_t milliseconds = 0;
  std::vector<Failure> failures = {};
  std::string reason = {};

  bool IsRunning() const { return state == SnapshotState::kRunning; }

  static SnapshotInfo Of(const Json& json) {
    SnapshotInfo info{.state_name = TextIn(json, "state")};
    info.state = kSnapshotStates.Find(info.state_name).value_or(SnapshotState::kFailed);
    for (const Json& index : MemberIn(json, "indices")) {
      if (index.is_string()) info.indices.push_back(index.get<std::string>());
    }
    const Json& shards = MemberIn(json, "shards");
    info.shards = NumberIn(shards, "total");
    info.failed = NumberIn(shards, "failed");
    info.milliseconds = NumberIn(json, "duration_in_millis");
    info.reason = TextIn(json, "reason");
    for (const Json& one : MemberIn(json, "failures")) {
      info.failures.push_back(
          {TextIn(one, "index"), NumberIn(one, "shard_id"), TextIn(one, "reason")});
    }
    return info;
  }
};

class SnapshotCreation {
 public:
  SnapshotCreation(const SnapshotCreateOptions& options, Context& context,
                   net::OpenSearchEndpoint endpoint, SnapshotRepository repository)
      : options_(options),
        context_(context),
        client_(std::move(endpoint), context.env),
        repository_(std::move(repository)) {}

  Result<int> Run() {
    auto code = Create();
    if (code || code.error().code != Code::kCancelled || !is_running_) return code;
    return Error{Code::kCancelled,
                 "stopped following snapshot '" + options_.name + "', which the cluster continues",
                 "the same command follows it again; DELETE " + Path() + " cancels it"};
  }

 private:
  Result<int> Create() {
    MUSTER_ASSIGN(const auto wanted,
                  SnapshotIndices::Of(client_, options_.indices, signals_.Token()));
    if (wanted.empty() && !options_.indices.empty()) {
      return Error{Code::kNotFound, client_.Place() + " has no index that --index selects",
                   "GET /_cat/indices lists them"};
    }
    MUSTER_TRY(repository_.Ensure(client_, options_.repository, signals_.Token()));
    MUSTER_ASSIGN(std::optional<SnapshotInfo> info, Find());
    existed_ = info.has_value();
    if (!existed_) {
      MUSTER_ASSIGN(info, Start(wanted));
    } else {
      MUSTER_TRY(CheckIndices(*info, wanted));
    }
    const bool is_old = !info->IsRunning() && existed_;
    if (info->IsRunning()) {
      MUSTER_ASSIGN(info, Follow(*std::move(info)));
    }
    const std::vector<NotInSnapshot> missing = MissingIn(info->indices, wanted, options_.indices);
    Report(*info, missing);
    if (info->state == SnapshotState::kSuccess) {
      const bool is_whole = std::ranges::none_of(missing, &NotInSnapshot::is_needed);
      return is_whole ? kDone : kDoneWithRejects;
    }
    if (is_old) return NotComplete(*info);
    return info->state == SnapshotState::kPartial ? kDoneWithRejects : kFailed;
  }

  std::string Path() const {
    return "/_snapshot/" + net::OpenSearchPath(repository_.name()) + "/" +
           net::OpenSearchPath(options_.name);
  }

  // None: there is no such snapshot.
  Result<std::optional<SnapshotInfo>> Find() {
    const auto answer = client_.SendForJson({.path = Path()}, signals_.Token());
    if (!answer && answer.error().code == Code::kNotFound) return std::optional<SnapshotInfo>();
    if (!answer) return answer.error();
    const Json& snapshots = MemberIn(*answer, "snapshots");
    if (!snapshots.is_array() || snapshots.empty()) return std::optional<SnapshotInfo>();
    return std::optional(SnapshotInfo::Of(snapshots[0]));
  }

  // A snapshot of that name may have been taken for another purpose, or on another day.
  Status CheckIndices(const SnapshotInfo& info, const SnapshotIndices& wanted) {
    // A snapshot that has just begun does not list its indices yet.
    if (info.IsRunning() && info.indices.empty()) return {};
    return CheckSameIndices(client_, options_.name, info.indices, wanted, options_.indices,
                            signals_.Token());
  }

  Error NotComplete(const SnapshotInfo& info) const {
    return Error{Code::kConflict,
                 "snapshot '" + options_.name + "' already exists and is not complete: " +
                     info.state_name + ", " + std::to_string(info.failed) + " of " +
                     std::to_string(info.shards) + " shards failed",
                 "choose another name for the snapshot, or delete that one"};
  }

  Result<std::optional<SnapshotInfo>> Start(const SnapshotIndices& wanted) {
    Json body{{"include_global_state", true}};
    if (!options_.indices.empty()) body["indices"] = options_.indices;
    if (!wanted.closed.empty()) {
      // Patterns do not match closed indices.
      if (options_.indices.empty()) body["indices"] = Json::array({"*"});
      for (const std::string& name : wanted.closed) body["indices"].push_back(name);
    }
    const net::OpenSearchCall call{
        .method = "PUT", .path = Path() + "?wait_for_completion=false", .body = ToJsonText(body)};
    const auto answer = client_.Send(call, signals_.Token());
    is_running_ = answer && answer->status < 300;
    // It may have been started by a request whose response was lost, or by another process.
    auto info = Find();
    if (info && *info) return info;
    if (!is_running_) {
      Error error = answer ? client_.ErrorOf(call, *answer) : answer.error();
      // The cluster reports its refusals as failures of its own.
      if (info && answer && answer->body.find("\"snapshot_") != std::string::npos) {
        error.code = Code::kIncompatible;
      }
      return error.Within("cannot start snapshot '" + options_.name + "'");
    }
    if (!info && !IsTransient(info.error().code)) return info.error();
    // The cluster's state has it before the repository lists it.
    return std::optional(SnapshotInfo{.state = SnapshotState::kRunning});
  }

  // Waits for the end of a running snapshot.
  Result<SnapshotInfo> Follow(SnapshotInfo info) {
    is_running_ = true;
    Progress progress(context_.progress, context_.err, context_.env, options_.name, 0,
                      [] { return TerminalWidth(STDERR_FILENO); });
    MonoTime answered = context_.env.MonoNow();
    bool was_listed = false;
    for (int looks = 1; info.IsRunning(); ++looks) {
      if (!context_.env.Sleep(kPauses.After(looks), signals_.Token())) {
        return Error{Code::kCancelled, "stopped"};
      }
      static_cast<void>(ShowStatus(progress));
      auto found = Find();
      if (!found || (!*found && !was_listed)) {
        const Error error = found ? Missing() : found.error();
        const bool may_pass = found || IsTransient(error.code);
        if (!may_pass || context_.env.MonoNow() - answered > kPatience) return error;
        progress.Note(error.message);
        continue;
      }
      if (!*found) return Missing();
      answered = context_.env.MonoNow();
      was_listed = true;
      info = **std::move(found);
    }
    is_running_ = false;
    progress.Note("");
    progress.Update(static_cast<uint64_t>(info.shards - info.failed),
                    static_cast<uint64_t>(info.shards));
    return info;
  }

  Error Missing() const {
    return Error{Code::kNotFound, client_.Place() + " has no snapshot '" + options_.name +
                                      "' any more: it was deleted while it was taken"};
  }

  // Only for display: a failure shows in the next look at the snapshot itself.
  Status ShowStatus(Progress& progress) {
    MUSTER_ASSIGN(const Json answer,
                  client_.SendForJson({.path = Path() + "/_status"}, signals_.Token()));
    const Json& snapshots = MemberIn(answer, "snapshots");
    if (!snapshots.is_array() || snapshots.empty()) return {};
    const Json& shards = MemberIn(snapshots[0], "shards_stats");
    const Json& stats = MemberIn(snapshots[0], "stats");
    const int64_t done = NumberIn(MemberIn(stats, "processed"), "size_in_bytes");
    const int64_t all = NumberIn(MemberIn(stats, "incremental"), "size_in_bytes");
    const int64_t failed = NumberIn(shards, "failed");
    progress.Note(Megabytes(std::min(done, all)) + " of " + Megabytes(all) + " MB" +
                  (failed > 0 ? ", " + std::to_string(failed) + " shards failed" : ""));
    progress.Update(static_cast<uint64_t>(NumberIn(shards, "done")),
                    static_cast<uint64_t>(NumberIn(shards, "total")));
    return {};
  }

  void Report(const SnapshotInfo& info, const std::vector<NotInSnapshot>& missing) const {
    if (context_.json) {
      Json failures = Json::array();
      for (const auto& [index, shard, reason] : info.failures) {
        failures.push_back({{"index", index}, {"shard", shard}, {"reason", reason}});
      }
      Json json{{"snapshot", options_.name},
                {"repository", repository_.name()},
                {"registered", repository_.was_registered()},
                {"existed", existed_},
                {"state", info.state_name},
                {"indices", info.indices},
                {"shards", info.shards},
                {"failed", info.failed},
                {"seconds", static_cast<double>(info.milliseconds) / 1e3},
                {"failures", std::move(failures)}};
      if (!info.reason.empty()) json["reason"] = info.reason;
      json["left_out"] = Json::array();
      for (const NotInSnapshot& one : missing) {
        json["left_out"].push_back({{"index", one.index}, {"reason", one.reason}});
      }
      context_.out << ToJsonText(json) << '\n';
      return;
    }
    if (repository_.was_registered()) {
      context_.out << options_.location << " is now registered in the cluster as repository '"
                   << repository_.name() << "'\n";
    }
    if (existed_) context_.out << "Snapshot '" << options_.name << "' was there already\n";
    PrintTables(info);
    for (const NotInSnapshot& one : missing) {
      context_.out << "Not in the snapshot: " << one.index << " (" << one.reason << ")\n";
    }
  }

  void PrintTables(const SnapshotInfo& info) const {
    const bool is_good = info.state == SnapshotState::kSuccess;
    Table table({{"SNAPSHOT"},
                 {"REPOSITORY"},
                 {"STATE"},
                 {"INDICES", Table::Align::kRight},
                 {"SHARDS", Table::Align::kRight},
                 {"FAILED", Table::Align::kRight},
                 {"SECONDS", Table::Align::kRight}});
    table.AddRow({{options_.name},
                  {repository_.name()},
                  {info.state_name, is_good ? Style::kNone : Style::kBad},
                  {std::to_string(info.indices.size())},
                  {std::to_string(info.shards)},
                  {std::to_string(info.failed), info.failed > 0 ? Style::kBad : Style::kNone},
                  {Fixed(static_cast<double>(info.milliseconds) / 1e3, 1)}});
    table.Print(context_.out, context_.color);
    if (is_good) return;
    context_.out << "\nThe snapshot is not complete" << (info.reason.empty() ? "" : ": ")
                 << info.reason << '\n';
    Table failures({{"INDEX"}, {"SHARD", Table::Align::kRight}, {"REASON"}});
    const size_t shown = std::min(info.failures.size(), kMostFailures);
    for (size_t i = 0; i < shown; ++i) {
      const SnapshotInfo::Failure& one = info.failures[i];
      failures.AddRow({{one.index}, {std::to_string(one.shard)}, {one.reason}});
    }
    if (shown > 0) failures.Print(context_.out, context_.color);
    if (shown < info.failures.size()) {
      context_.out << "and " << info.failures.size() - shown << " more; --json has them all\n";
    }
    context_.out << "Repair what is named here, delete the snapshot or choose another name, and "
                    "take it again\n";
  }

  const SnapshotCreateOptions& options_;
  Context& context_;
  net::OpenSearchClient client_;
  SnapshotRepository repository_;
  const StopOnSignals signals_{"\nstopping… the snapshot continues in the cluster\n"};
  bool existed_ = false;
  bool is_running_ = false;
};

}  // namespace

Result<int> CreateSnapshot(const SnapshotCreateOptions& options, Context& context) {
  MUSTER_TRY(CheckName("snapshot", options.name));
  if (!options.repository.empty()) MUSTER_TRY(CheckName("repository", options.repository));
  MUSTER_ASSIGN(const Url url, ParseUrl(options.cluster));
  MUSTER_ASSIGN(net::OpenSearchEndpoint endpoint, net::OpenSearchEndpoint::FromUrl(url, {}));
  if (url.path.size() > 1) {
    return Error{Code::kInvalid, "the cluster's URL names an index", "select indices with --index"};
  }
  MUSTER_ASSIGN(SnapshotRepository repository, SnapshotRepository::At(options.location));
  return SnapshotCreation(options, context, std::move(endpoint), std::move(repository)).Run();
}

}  // namespace muster::cli
