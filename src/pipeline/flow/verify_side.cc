#include "pipeline/flow/verify_side.h"

#include <string>

#include "core/json_scan.h"
#include "core/log.h"
#include "pipeline/flow/shards.h"
#include "pipeline/flow/transform_chain.h"
#include "pipeline/table/table_shape.h"

namespace muster::pipeline {
namespace {

constexpr int64_t kProgressEvery = 1'000;

// Of a document where null is a JSON value: which of these columns are JSON null.
DocumentHash HashJsonNulls(std::string_view body, const std::vector<std::string>& columns) {
  DocumentHash hash;
  JsonMembers members(body.substr(SkipJsonSpace(body, 0)));
  while (const auto member = members.Next()) {
    if (member->value != "null") continue;
    for (const std::string& column : columns) {
      if (JsonKeyIs(member->key, column)) hash += HashBytes("JSON null in " + column);
    }
  }
  return hash;
}

DocumentHash ContentOf(const Document& document, const ComparedContents& contents) {
  if (!contents.compared) return {};
  const auto hash = HashDocument(document.body, contents.types);
  DocumentHash content = hash ? *hash : HashBytes(document.body);
  // With a sum, swapping the routing of two documents would go unnoticed.
  if (contents.routing && !document.routing.empty()) {
    content = HashBytes(std::to_string(content.low) + "/" + std::to_string(content.high) + "/" +
                        std::string(document.routing));
  }
  if (hash && document.null_is_json) content += HashJsonNulls(document.body, contents.json_nulls);
  return content;
}

Error Stopped() { return {Code::kCancelled, "stopped on request"}; }

}  // namespace

Result<std::vector<std::string>> ColumnsWithTwoNulls(const VerifySide& side) {
  std::vector<std::string> names;
  MUSTER_ASSIGN(const auto collection, side.source.Describe(side.collection));
  if (!collection) return names;
  MUSTER_ASSIGN(const TableShape shape, ShapeOf(*collection, false));
  for (const TableShape::Column& column : shape.columns) {
    if (column.nullable && (column.type == "json" || column.type == "jsonb")) {
      names.push_back(column.name);
    }
  }
  return names;
}

Status ReadSide(const VerifySide& side, const std::vector<Partition>& partitions,
                const TransformPlan* plan, const ComparedContents& contents,
                const std::stop_token& stop, SideVisitor& visitor) {
  TransformChain transforms;
  if (plan != nullptr) {
    MUSTER_ASSIGN(transforms, TransformChain::Of(*plan, side.collection));
  }
  int64_t read = 0;
  TransformChain::Made made;
  Arena arena;
  for (const Partition& partition : partitions) {
    if (stop.stop_requested()) return Stopped();
    if (const auto known = visitor.Known(partition)) {
      read += *known;
      continue;
    }
    VerifyReport::Count count{partition};
    const int64_t before = read;
    MUSTER_ASSIGN(const auto reader, side.source.Read(partition, "", stop));
    while (true) {
      MUSTER_ASSIGN(const auto next, reader->Next());
      if (!next) break;
      if (++read % kProgressEvery == 0) {
        visitor.Read(kProgressEvery);
        if (stop.stop_requested()) return Stopped();
      }
      arena.Clear();
      if (!next->defect.empty() || !transforms.Apply(*next, arena, made)) {
        ++count.documents;
        ++count.unreadable;
        visitor.Spoilt(*next, partition);
        continue;
      }
      for (const Document& document : made.documents) {
        ++count.documents;
        visitor.Visit(SeenDocument{document.id, document.routing, ContentOf(document, contents),
                                   partition, document.position});
      }
    }
    if (partition.follows && read > before) {
      Log(Level::kWarning, "documents changed while they were compared: they may count twice",
          {{"collection", side.collection}, {"documents", read - before}});
    }
    MUSTER_TRY(visitor.Finished(count, read - before));
  }
  return CheckCount(side.source, side.collection, partitions, [read] { return read; });
}

}  // namespace muster::pipeline
