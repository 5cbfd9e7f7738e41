#include "cli/verify_report.h"

#include <algorithm>

#include "cli/left_out.h"
#include "cli/metadata_objects.h"
#include "cli/table.h"
#include "core/json.h"

namespace muster::cli {
namespace {

std::string_view KindName(pipeline::VerifyDifference::Kind kind) {
  switch (kind) {
    case pipeline::VerifyDifference::Kind::kMissing:
      return "missing";
    case pipeline::VerifyDifference::Kind::kExtra:
      return "extra";
    case pipeline::VerifyDifference::Kind::kChanged:
      return "changed";
    case pipeline::VerifyDifference::Kind::kUnreadable:
      return "unreadable";
  }
  return "";
}

Json CountsJson(const std::vector<pipeline::VerifyReport::Count>& counts) {
  Json list = Json::array();
  for (const pipeline::VerifyReport::Count& count : counts) {
    list.push_back(Json{{"shard", count.partition.shard},
                        {"part", count.partition.part},
                        {"begin", count.partition.begin},
                        {"end", count.partition.end},
                        {"documents", count.documents},
                        {"unreadable", count.unreadable}});
  }
  return list;
}

void PrintJson(const VerifyOutcome& outcome, std::ostream& out) {
  Json list = Json::array();
  for (const Verified& one : outcome.collections) {
    Json named = Json::array();
    for (const pipeline::VerifyDifference& difference : one.report.named) {
      named.push_back(Json{{"kind", KindName(difference.kind)},
                           {"id", difference.id},
                           {"shard", difference.shard},
                           {"position", difference.position}});
    }
    list.push_back(Json{{"collection", one.collection},
                        {"target", one.target},
                        {"equal", one.Equal()},
                        {"source_documents", one.report.SourceDocuments()},
                        {"target_documents", one.report.TargetDocuments()},
                        {"unreadable", one.report.Unreadable()},
                        {"differences", one.report.differences},
                        {"deleted", one.report.deleted},
                        {"named", std::move(named)},
                        {"source_partitions", CountsJson(one.report.source)},
                        {"target_partitions", CountsJson(one.report.target)}});
    if (one.failure) list.back()["error"] = one.failure->ToString();
  }
  Json report{{"equal", outcome.Equal()}, {"collections", std::move(list)}};
  if (outcome.metadata) {
    report["metadata"] = MetadataJson(*outcome.metadata);
    for (Json& one : report["metadata"]) one.erase("body");
  }
  AddLeftOut(outcome.left_out, report);
  out << ToJsonText(report) << '\n';
}

// Its cells from PARTITIONS to DIFFERENT.
std::vector<std::string> NumbersOf(const Verified& one, bool checksums) {
  if (one.failure) return std::vector<std::string>(5, "-");
  const pipeline::VerifyReport& report = one.report;
  return {std::to_string(report.source.size()), std::to_string(report.SourceDocuments()),
          std::to_string(report.TargetDocuments()), std::to_string(report.Unreadable()),
          checksums ? std::to_string(report.differences) : "-"};
}

void PrintTables(const std::vector<Verified>& all, bool checksums, Context& context) {
  using enum Table::Align;
  const bool has_deleted = std::any_of(all.begin(), all.end(),
                                       [](const Verified& one) { return one.report.deleted > 0; });
  std::vector<Table::Column> columns{{"COLLECTION"},       {"TARGET"},       {"PARTITIONS", kRight},
                                     {"SOURCE", kRight},   {"SINK", kRight}, {"UNREADABLE", kRight},
                                     {"DIFFERENT", kRight}};
  if (has_deleted) columns.push_back({"DELETED", kRight});
  columns.push_back({"RESULT"});
  Table table(columns);
  Table differences({{"COLLECTION"}, {"WHAT"}, {"ID"}, {"SHARD", kRight}, {"POSITION"}});
  bool some = false;
  for (const Verified& one : all) {
    std::vector<Table::Cell> row{{one.collection}, {one.target}};
    for (const std::string& number : NumbersOf(one, checksums)) row.push_back({number});
    if (has_deleted) row.push_back({std::to_string(one.report.deleted)});
    const bool equal = one.Equal();
    row.push_back({one.failure ? "not comparable"
                   : equal     ? "equal"
                               : "different",
                   equal ? Style::kGood : Style::kBad});
    table.AddRow(std::move(row));
    for (const pipeline::VerifyDifference& difference : one.report.named) {
      some = true;
      differences.AddRow({{one.collection},
                          {std::string(KindName(difference.kind)), Style::kWarn},
                          {difference.id},
                          {std::to_string(difference.shard)},
                          {difference.position}});
    }
  }
  table.Print(context.out, context.color);
  if (!some) return;
  context.out << '\n';
  differences.Print(context.out, context.color);
}

// Only what differs, and how much there is.
void PrintMetadataDifferences(const std::vector<metadata::Reported>& all, Context& context) {
  std::vector<metadata::Reported> different;
  for (const metadata::Reported& one : all) {
    if (HasMetadataFailures({one})) different.push_back(one);
  }
  context.out << "Metadata: " << different.size() << " of " << all.size() << " objects differ\n";
  if (!different.empty()) PrintMetadata(different, context);
}

}  // namespace

bool VerifyOutcome::Equal() const {
  return !failure && std::all_of(collections.begin(), collections.end(), [](const Verified& one) {
    return one.Equal();
  }) && (!metadata || !HasMetadataFailures(*metadata));
}

void PrintVerified(const VerifyOutcome& outcome, bool checksums, Context& context) {
  if (context.json) return PrintJson(outcome, context.out);
  PrintTables(outcome.collections, checksums, context);
  if (outcome.metadata) {
    context.out << '\n';
    PrintMetadataDifferences(*outcome.metadata, context);
  }
  PrintLeftOut(context.out, outcome.left_out);
}

}  // namespace muster::cli
