#include "cli/snapshot_tables.h"

#include <algorithm>
#include <optional>
#include <set>

#include "cli/exit_codes.h"
#include "cli/table.h"
#include "core/json.h"
#include "net/opensearch.h"

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

// An index as listings show it: files, bytes, and why some shards cannot be listed.
struct Listed {
  uint64_t documents = 0;  // by Lucene's count, including nested ones
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::string versions;
  std::string note;
};

Listed ListIndex(const Repository& repository, const Snapshot& snapshot,
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

// Why a migration of the whole snapshot has no collection of this name; empty: it has.
std::string NoteOn(const SnapshotIndex& index, const lucene::BackingIndices& streams) {
  const auto stream = streams.find(index.name);
  if (stream != streams.end()) return "part of data stream " + stream->second;
  if (index.HasMeta(net::kOpenSearchStoreMark)) return "a Muster store: not migrated";
  if (index.name.starts_with('.')) return "begins with a dot: not migrated unless named";
  return index.IsHidden() ? "hidden: not migrated unless named" : "";
}

// Reads every byte of a shard's files, then every document.
Status CheckShard(const SnapshotSelection& selection, const ShardName& shard, ShardCounts& counts) {
  MUSTER_ASSIGN(const ShardDirectory directory, selection.OpenShard(shard));
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

}  // namespace

Result<int> ListSnapshots(const SnapshotSelection& selection, Context& context) {
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
  std::string streams_of;  // this snapshot
  lucene::BackingIndices streams;
  MUSTER_TRY(selection.ForEachIndex([&](const Snapshot& snapshot,
                                        const SnapshotIndex& index) -> Status {
    Listed listed = ListIndex(selection.repository(), snapshot, index);
    if (streams_of != snapshot.name) {
      MUSTER_ASSIGN(const Json global, selection.repository().ReadGlobalMetadata(snapshot));
      streams = lucene::BackingIndicesOf(global);
      streams_of = snapshot.name;
    }
    if (listed.note.empty()) listed.note = NoteOn(index, streams);
    const std::string state(StateName(snapshot.state));
    table.AddRow({{snapshot.name},
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
  PrintList(table, list, context);
  return kDone;
}

// Segment by segment, from the commits, without reading documents.
Result<int> ShowSegments(const SnapshotSelection& selection, Context& context) {
  using enum Table::Align;
  Table table({{"SNAPSHOT"},
               {"INDEX"},
               {"SHARD", kRight},
               {"SEGMENT"},
               {"LUCENE"},
               {"DOCUMENTS", kRight},
               {"DELETED", kRight}});
  Json list = Json::array();
  MUSTER_TRY(
      selection.ForEachIndex([&](const Snapshot& snapshot, const SnapshotIndex& index) -> Status {
        Json shards = Json::array();
        for (const int shard : selection.ShardsOf(index)) {
          MUSTER_ASSIGN(const ShardDirectory directory,
                        selection.OpenShard(ShardName{snapshot, index, shard}));
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
  PrintList(table, list, context);
  return kDone;
}

Result<int> CheckSnapshots(const SnapshotSelection& selection, Context& context) {
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
  MUSTER_TRY(selection.ForEachShard([&](const ShardName& shard) {
    ShardCounts counts;
    const Status status = CheckShard(selection, shard, counts);
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
  PrintList(table, list, context);
  if (first_error) return *first_error;
  return kDone;
}

}  // namespace muster::cli
