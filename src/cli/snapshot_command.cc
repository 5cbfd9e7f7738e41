#include <memory>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/snapshot_create.h"
#include "cli/snapshot_selection.h"
#include "cli/snapshot_tables.h"
#include "core/json.h"
#include "core/sha256.h"

namespace muster::cli {
namespace {

using lucene::Document;
using lucene::ShardDirectory;
using lucene::ShardReader;

// JSON text on one line: line ends only occur outside its strings.
std::string OnOneLine(std::string_view json) {
  std::string line(json);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

bool IsJsonObject(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

// SMILE, CBOR or YAML sources are supported, but cannot be part of a JSON line.
std::string SourceMember(const std::string& name, std::string_view source) {
  if (IsJsonObject(source)) return ",\"" + name + "\":" + OnOneLine(source);
  return ",\"" + name + "_base64url\":\"" + lucene::EncodeBase64Url(source) + "\"";
}

class SnapshotRun {
 public:
  SnapshotRun(const SnapshotOptions& options, Context& context)
      : options_(options), context_(context) {}

  Result<int> Run() {
    if (options_.from && (options_.index.empty() || !options_.shard || options_.snapshot.empty())) {
      return Error{Code::kInvalid, "--from is a position in one shard",
                   "give --snapshot, --index and --shard as well"};
    }
    MUSTER_ASSIGN(const SnapshotSelection selection, SnapshotSelection::Open(options_));
    if (options_.action == "list") return ListSnapshots(selection, context_);
    if (options_.action == "show") return ShowSegments(selection, context_);
    if (options_.action == "check") return CheckSnapshots(selection, context_);
    MUSTER_TRY(selection.ForEachShard([&](const ShardName& shard) {
      return options_.action == "cat" ? Cat(selection, shard) : Digest(selection, shard);
    }));
    return kDone;
  }

 private:
  template <class Visit>
  Status ForEachDocument(const SnapshotSelection& selection, const ShardName& shard,
                         Visit visit) const {
    MUSTER_ASSIGN(const ShardDirectory directory, selection.OpenShard(shard));
    MUSTER_ASSIGN(ShardReader reader, ShardReader::Open(directory));
    reader.Seek(options_.from.value_or(0));
    Document document;
    while (true) {
      MUSTER_ASSIGN(const bool found, reader.Next(document));
      if (!found) return {};
      visit(document);
      if (!context_.out) return Error{Code::kFull, "cannot write the output"};
    }
  }

  Status Cat(const SnapshotSelection& selection, const ShardName& shard) const {
    const std::string start = "{\"_snapshot\":" + ToJsonText(shard.snapshot.name) +
                              ",\"_index\":" + ToJsonText(shard.index.name) +
                              ",\"_shard\":" + std::to_string(shard.shard) + ",\"_position\":";
    return ForEachDocument(selection, shard, [&](const Document& document) {
      std::ostream& out = context_.out;
      out << start << document.position;
      if (!document.type.empty()) out << ",\"_type\":" << ToJsonText(document.type);
      out << ",\"_id\":" << ToJsonText(document.id);
      if (document.routing) {
        out << ",\"_routing\":" << ToJsonText(std::string(*document.routing));
      }
      if (document.source) out << SourceMember("_source", *document.source);
      if (options_.recovery_source && document.recovery_source) {
        out << SourceMember("_recovery_source", *document.recovery_source);
      }
      out << "}\n";
    });
  }

  Status Digest(const SnapshotSelection& selection, const ShardName& shard) const {
    return ForEachDocument(selection, shard, [&](const Document& document) {
      const auto& recovery = document.recovery_source;
      context_.out << shard.snapshot.name << '\t' << shard.index.name << '\t' << shard.shard << '\t'
                   << document.type << '\t' << ToJsonText(document.id) << '\t'
                   << (document.routing ? ToJsonText(std::string(*document.routing)) : "null")
                   << '\t' << (document.source ? std::to_string(document.source->size()) : "-")
                   << '\t' << (document.source ? Sha256Hex(*document.source) : "-") << '\t'
                   << (options_.recovery_source && recovery ? Sha256Hex(*recovery) : "-") << '\n';
    });
  }

  const SnapshotOptions& options_;
  Context& context_;
};

void AddCreate(Command& command, Context& context) {
  Command create = command.AddCommand(
      "create", "Have a cluster take a snapshot, and follow it; the same name again resumes");
  auto options = std::make_shared<SnapshotCreateOptions>();
  create.AddOption("CLUSTER", options->cluster, "opensearch+http(s)://HOST:PORT").Required();
  create
      .AddOption("REPOSITORY", options->location,
                 "A folder that the cluster's machines share, or s3://BUCKET/PREFIX")
      .Required();
  create.AddOption("NAME", options->name, "The snapshot's name").Required();
  create
      .AddOption("--index", options->indices,
                 "An index, or a pattern; can be repeated; all indices by default")
      .TypeName("NAME")
      .OneValuePerUse();
  create
      .AddOption("--repository", options->repository,
                 "The cluster's name for the repository, which is registered if missing; "
                 "by default the name of the one at this location, or muster")
      .TypeName("NAME");
  create.Action(context, [options, &context] { return CreateSnapshot(*options, context); });
}

}  // namespace

void AddSnapshotCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("snapshot", "Take snapshots of a cluster, and read them without it");
  command.Group("Move data");
  command.RequireCommand();
  auto options = std::make_shared<SnapshotOptions>();
  const auto add = [&](const std::string& action, const std::string& about) {
    Command sub = command.AddCommand(action, about);
    sub.AddOption("REPOSITORY", options->repository,
                  "The repository's folder, or s3://BUCKET/PREFIX")
        .Required();
    sub.AddOption("--snapshot", options->snapshot, "Only this one; all by default")
        .TypeName("NAME");
    sub.AddOption("--index", options->index, "Only this one; all by default").TypeName("NAME");
    if (action != "list") {
      sub.AddOption("--shard", options->shard, "Only this one; all by default")
          .TypeName("N")
          .NonNegative();
    }
    if (action == "cat" || action == "digest") {
      sub.AddOption("--from", options->from,
                    "Start at this position of the one shard that is named")
          .TypeName("POSITION");
      sub.AddFlag("--recovery-source", options->recovery_source, "Print _recovery_source too");
    }
    sub.Action(context, [options, action, &context] {
      options->action = action;
      return SnapshotRun(*options, context).Run();
    });
  };
  AddCreate(command, context);
  add("list", "List snapshots and their indices");
  add("show", "Show the segments of each shard; with --json settings, mappings and aliases too");
  add("check", "Read every byte and every document, and report damage");
  add("cat", "Print documents as lines of JSON");
  add("digest", "Print hashes of each document, for comparisons");
  command.Footer(
      "  muster snapshot create opensearch+https://search.example /backups/repo nightly\n"
      "  muster snapshot list /backups/repo\n"
      "  muster snapshot check /backups/repo --snapshot nightly\n"
      "  muster snapshot cat /backups/repo --snapshot nightly --index orders --shard 0 --from "
      "1000");
}

}  // namespace muster::cli
