#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/table.h"
#include "core/json.h"
#include "core/sha256.h"
#include "core/url.h"
#include "lucene/lucene.h"
#include "net/s3.h"

namespace muster::cli {
namespace {

using lucene::Document;
using lucene::Repository;
using lucene::ShardCounts;
using lucene::ShardDirectory;
using lucene::ShardReader;
using lucene::Snapshot;
using lucene::SnapshotIndex;
using lucene::SnapshotState;

struct SnapshotOptions {
  std::string action;
  std::string repository;
  std::string snapshot;  // empty: all
  std::string index;     // empty: all
  std::optional<int> shard;
  std::optional<uint64_t> from;
  bool recovery_source = false;
};

std::string_view StateName(SnapshotState state) {
  switch (state) {
    case SnapshotState::kInProgress:
      return "in progress";
    case SnapshotState::kSuccess:
      return "success";
    case SnapshotState::kFailed:
      return "failed";
    case SnapshotState::kPartial:
      return "partial";
    case SnapshotState::kIncompatible:
      return "incompatible";
    case SnapshotState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

// One shard of one index of one snapshot.
struct ShardName {
  const Snapshot& snapshot;
  const SnapshotIndex& index;
  int shard;
};

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
    MUSTER_ASSIGN(auto blobs, OpenBlobs(options_.repository));
    MUSTER_ASSIGN(const Repository repository, Repository::Open(std::move(blobs)));
    if (options_.action == "list") return List(repository);
    if (options_.action == "show") return Show(repository);
    if (options_.action == "check") return Check(repository);
    MUSTER_TRY(ForEachShard(repository, [&](const ShardName& shard) {
      return options_.action == "cat" ? Cat(repository, shard) : Digest(repository, shard);
    }));
    return kDone;
  }

 private:
  // A folder, or s3://BUCKET/PREFIX.
  static Result<std::unique_ptr<lucene::Blobs>> OpenBlobs(const std::string& repository) {
    if (!repository.starts_with("s3://")) return lucene::OpenFolder(repository);
    MUSTER_ASSIGN(const Url url, ParseUrl(repository));
    for (const auto& [name, value] : url.query) {
      if (name != "region" && name != "endpoint" && name != "path_style") {
        return Error{Code::kInvalid, "the URL has an unknown parameter '" + name + "'",
                     "there are region, endpoint and path_style"};
      }
    }
    MUSTER_ASSIGN(const net::S3Location location, net::S3Location::FromUrl(url));
    return lucene::OpenBucket(location, RealEnv());
  }

  Result<std::vector<Snapshot>> ChosenSnapshots(const Repository& repository) const {
    if (options_.snapshot.empty()) return repository.ReadSnapshots();
    MUSTER_ASSIGN(Snapshot snapshot, repository.ReadSnapshot(options_.snapshot));
    return std::vector{std::move(snapshot)};
  }

  // The requested index, or all; ReadIndex reports one that does not exist.
  std::vector<std::string> ChosenIndices(const Snapshot& snapshot) const {
    if (!options_.index.empty()) return {options_.index};
    return snapshot.indices;
  }

  template <class Visit>
  Status ForEachIndex(const Repository& repository, Visit visit) const {
    MUSTER_ASSIGN(const std::vector<Snapshot> snapshots, ChosenSnapshots(repository));
    for (const Snapshot& snapshot : snapshots) {
      for (const std::string& index_name : ChosenIndices(snapshot)) {
        MUSTER_ASSIGN(const SnapshotIndex index, repository.ReadIndex(snapshot, index_name));
        MUSTER_TRY(visit(snapshot, index));
      }
    }
    return {};
  }

  template <class Visit>
  Status ForEachShard(const Repository& repository, Visit visit) const {
    return ForEachIndex(repository,
                        [&](const Snapshot& snapshot, const SnapshotIndex& index) -> Status {
                          const int first = options_.shard.value_or(0);
                          const int last = options_.shard.value_or(index.shards - 1);
                          for (int shard = first; shard <= last; ++shard) {
                            MUSTER_TRY(visit(ShardName{snapshot, index, shard}));
                          }
                          return {};
                        });
  }

  // The files of a readable shard, or why it cannot be read.
  static Result<ShardDirectory> OpenShard(const Repository& repository, const ShardName& shard) {
    const SnapshotState state = shard.snapshot.state;
    if (state != SnapshotState::kSuccess && state != SnapshotState::kPartial) {
      return Error{Code::kIncompatible, repository.name() + ": snapshot " + shard.snapshot.name +
                                            " is not complete: its state is '" +
                                            std::string(StateName(state)) + "'"};
    }
    if (!shard.index.refusal.empty()) {
      return Error{Code::kIncompatible,
                   repository.name() + ": index " + shard.index.name + ": " + shard.index.refusal,
                   "read this index from a running cluster instead"};
    }
    return repository.ReadShard(shard.snapshot, shard.index, shard.shard);
  }

  template <class Visit>
  Status ForEachDocument(const Repository& repository, const ShardName& shard, Visit visit) const {
    MUSTER_ASSIGN(const ShardDirectory directory, OpenShard(repository, shard));
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

  Status Cat(const Repository& repository, const ShardName& shard) const {
    const std::string start = "{\"_snapshot\":" + ToJsonText(shard.snapshot.name) +
                              ",\"_index\":" + ToJsonText(shard.index.name) +
                              ",\"_shard\":" + std::to_string(shard.shard) + ",\"_position\":";
    return ForEachDocument(repository, shard, [&](const Document& document) {
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

  Status Digest(const Repository& repository, const ShardName& shard) const {
    return ForEachDocument(repository, shard, [&](const Document& document) {
      const auto& recovery = document.recovery_source;
      context_.out << shard.snapshot.name << '\t' << shard.index.name << '\t' << shard.shard << '\t'
                   << document.type << '\t' << ToJsonText(document.id) << '\t'
                   << (document.routing ? ToJsonText(std::string(*document.routing)) : "null")
                   << '\t' << (document.source ? std::to_string(document.source->size()) : "-")
                   << '\t' << (document.source ? Sha256Hex(*document.source) : "-") << '\t'
                   << (options_.recovery_source && recovery ? Sha256Hex(*recovery) : "-") << '\n';
    });
  }

  // What listings show of an index: files, bytes, and why some cannot be listed.
  struct Listed {
    uint64_t documents = 0;  // by Lucene's count, including nested ones
    uint64_t files = 0;
    uint64_t bytes = 0;
    std::string versions;
    std::string note;
  };

  static Listed ListIndex(const Repository& repository, const Snapshot& snapshot,
                          const SnapshotIndex& index) {
    Listed listed;
    listed.note = index.refusal;
    std::set<std::string> versions;
    for (int shard = 0; shard < index.shards; ++shard) {
      const auto directory = repository.ReadShard(snapshot, index, shard);
      if (!directory) {
        if (listed.note.empty()) listed.note = directory.error().message;
        continue;
      }
      for (const auto& [name, file] : directory->files()) {
        ++listed.files;
        listed.bytes += file.length;
      }
      const auto reader = ShardReader::Open(*directory);
      if (!reader) {
        if (listed.note.empty()) listed.note = reader.error().message;
        continue;
      }
      for (const lucene::SegmentSummary& segment : reader->Segments()) {
        versions.insert(segment.lucene_version);
        listed.documents += segment.documents - std::min(segment.deleted, segment.documents);
      }
    }
    for (const std::string& version : versions) {
      listed.versions += (listed.versions.empty() ? "" : ", ") + version;
    }
    return listed;
  }

  Result<int> List(const Repository& repository) const {
    using enum Table::Align;
    Table table({{"SNAPSHOT"},
                 {"STATE"},
                 {"INDEX"},
                 {"SHARDS", kRight},
                 {"DOCUMENTS", kRight},
                 {"FILES", kRight},
                 {"BYTES", kRight},
                 {"LUCENE"},
                 {"NOTE"}});
    Json list = Json::array();
    MUSTER_TRY(ForEachIndex(repository, [&](const Snapshot& snapshot, const SnapshotIndex& index) {
      const Listed listed = ListIndex(repository, snapshot, index);
      const std::string state(StateName(snapshot.state));
      table.AddRow(
          {{snapshot.name},
           {state, snapshot.state == SnapshotState::kSuccess ? Style::kGood : Style::kWarn},
           {index.name},
           {std::to_string(index.shards)},
           {std::to_string(listed.documents)},
           {std::to_string(listed.files)},
           {std::to_string(listed.bytes)},
           {listed.versions},
           {listed.note, Style::kWarn}});
      list.push_back(Json{{"snapshot", snapshot.name},
                          {"state", state},
                          {"index", index.name},
                          {"shards", index.shards},
                          {"documents", listed.documents},
                          {"files", listed.files},
                          {"bytes", listed.bytes},
                          {"lucene", listed.versions},
                          {"note", listed.note}});
      return Status();
    }));
    if (context_.json) {
      context_.out << ToJsonText(list) << '\n';
    } else {
      table.Print(context_.out, context_.color);
    }
    return kDone;
  }

  // Segment by segment, from the commits, without reading documents.
  Result<int> Show(const Repository& repository) const {
    using enum Table::Align;
    Table table({{"SNAPSHOT"},
                 {"INDEX"},
                 {"SHARD", kRight},
                 {"SEGMENT"},
                 {"LUCENE"},
                 {"DOCUMENTS", kRight},
                 {"DELETED", kRight}});
    Json list = Json::array();
    MUSTER_TRY(ForEachIndex(
        repository, [&](const Snapshot& snapshot, const SnapshotIndex& index) -> Status {
          Json shards = Json::array();
          const int first = options_.shard.value_or(0);
          const int last = options_.shard.value_or(index.shards - 1);
          for (int shard = first; shard <= last; ++shard) {
            MUSTER_ASSIGN(const ShardDirectory directory,
                          OpenShard(repository, ShardName{snapshot, index, shard}));
            MUSTER_ASSIGN(const ShardReader reader, ShardReader::Open(directory));
            Json segments = Json::array();
            for (const lucene::SegmentSummary& segment : reader.Segments()) {
              table.AddRow({{snapshot.name},
                            {index.name},
                            {std::to_string(shard)},
                            {segment.name},
                            {segment.lucene_version},
                            {std::to_string(segment.documents)},
                            {std::to_string(segment.deleted)}});
              segments.push_back(Json{{"segment", segment.name},
                                      {"lucene", segment.lucene_version},
                                      {"documents", segment.documents},
                                      {"deleted", segment.deleted}});
            }
            shards.push_back(Json{{"shard", shard}, {"segments", segments}});
          }
          list.push_back(Json{{"snapshot", snapshot.name},
                              {"index", index.name},
                              {"settings", index.settings},
                              {"mappings", index.mappings},
                              {"aliases", index.aliases},
                              {"shards", shards}});
          return {};
        }));
    if (context_.json) {
      context_.out << ToJsonText(list) << '\n';
    } else {
      table.Print(context_.out, context_.color);
    }
    return kDone;
  }

  // Reads every byte of a shard's files, then every document.
  static Status CheckShard(const Repository& repository, const ShardName& shard,
                           ShardCounts& counts) {
    MUSTER_ASSIGN(const ShardDirectory directory, OpenShard(repository, shard));
    for (const auto& [name, file] : directory.files()) MUSTER_TRY(directory.Check(file));
    MUSTER_ASSIGN(ShardReader reader, ShardReader::Open(directory));
    Document document;
    while (true) {
      auto found = reader.Next(document);
      counts = reader.counts();
      MUSTER_TRY(found);
      if (!*found) return {};
    }
  }

  Result<int> Check(const Repository& repository) const {
    using enum Table::Align;
    Table table({{"STATUS"},
                 {"SNAPSHOT"},
                 {"INDEX"},
                 {"SHARD", kRight},
                 {"DOCUMENTS", kRight},
                 {"NESTED", kRight},
                 {"DELETED", kRight},
                 {"NO SOURCE", kRight},
                 {"FOUND"}});
    Json list = Json::array();
    std::optional<Error> first_error;
    MUSTER_TRY(ForEachShard(repository, [&](const ShardName& shard) {
      ShardCounts counts;
      const Status status = CheckShard(repository, shard, counts);
      if (!status && !first_error) first_error = status.error();
      table.AddRow({{status ? "ok" : "fail", status ? Style::kGood : Style::kBad},
                    {shard.snapshot.name},
                    {shard.index.name},
                    {std::to_string(shard.shard)},
                    {std::to_string(counts.documents)},
                    {std::to_string(counts.nested)},
                    {std::to_string(counts.deleted)},
                    {std::to_string(counts.without_source),
                     counts.without_source > 0 ? Style::kWarn : Style::kNone},
                    {status ? "" : status.error().message}});
      list.push_back(Json{{"status", status ? "ok" : "fail"},
                          {"snapshot", shard.snapshot.name},
                          {"index", shard.index.name},
                          {"shard", shard.shard},
                          {"documents", counts.documents},
                          {"nested", counts.nested},
                          {"deleted", counts.deleted},
                          {"without_source", counts.without_source},
                          {"message", status ? "" : status.error().message}});
      return Status();
    }));
    if (context_.json) {
      context_.out << ToJsonText(list) << '\n';
    } else {
      table.Print(context_.out, context_.color);
    }
    if (first_error) return *first_error;
    return kDone;
  }

  const SnapshotOptions& options_;
  Context& context_;
};

}  // namespace

void AddSnapshotCommand(Command& app, Context& context) {
  Command command = app.AddCommand(
      "snapshot", "Read a snapshot repository of Elasticsearch or OpenSearch, without a cluster");
  command.Group("Look at data");
  auto options = std::make_shared<SnapshotOptions>();
  command.AddOption("ACTION", options->action, "What to do")
      .Required()
      .OneOf({"list", "show", "check", "cat", "digest"});
  command
      .AddOption("REPOSITORY", options->repository,
                 "The repository's folder, or s3://BUCKET/PREFIX")
      .Required();
  command.AddOption("--snapshot", options->snapshot, "Only this one; all by default")
      .TypeName("NAME");
  command.AddOption("--index", options->index, "Only this one; all by default").TypeName("NAME");
  command.AddOption("--shard", options->shard, "Only this one; all by default").TypeName("N");
  command
      .AddOption("--from", options->from,
                 "Start at this position of the one shard that is named; for cat and digest")
      .TypeName("POSITION");
  command.AddFlag("--recovery-source", options->recovery_source,
                  "Print _recovery_source too; for cat and digest");
  command.Footer(
      "  muster snapshot list /backups/repo\n"
      "  muster snapshot check /backups/repo --snapshot nightly\n"
      "  muster snapshot cat /backups/repo --snapshot nightly --index orders --shard 0 --from "
      "1000");
  command.Action(context, [options, &context] { return SnapshotRun(*options, context).Run(); });
}

}  // namespace muster::cli
