#include <algorithm>
#include <array>

#include "core/gzip.h"
#include "core/json.h"
#include "core/json_scan.h"
#include "events/event_json.h"
#include "fuzz/inputs/inputs.h"
#include "metadata/compare.h"
#include "metadata/rule_set.h"
#include "muster/migrate.h"
#include "pipeline/file/csv_record.h"
#include "pipeline/flow/dead_letter_file.h"
#include "pipeline/flow/transform_chain.h"
#include "pipeline/postgres/copy_rows.h"
#include "pipeline/postgres/pg_array_literal.h"
#include "pipeline/table/number_rule.h"
#include "plan/model/plan.h"
#include "plan/model/plan_json.h"
#include "replica/replica_file.h"
#include "replica/sql_template.h"
#include "store/store_url.h"
#include "task/call/sql_script.h"

namespace muster::fuzz {
namespace {

void ReadPlan(std::string_view bytes) {
  const auto checked = plan::ParsePlan(bytes, "plan.yaml", {});
  if (!checked.plan) return;
  // The plan that a run stores must be readable when it resumes.
  if (!plan::ReadCanonical(plan::Canonical(*checked.plan))) __builtin_trap();
}

// Two parts: the transforms, and documents, one per line.
void ApplyTransforms(std::string_view bytes) {
  const auto [yaml, documents] = TakePart(bytes);
  const auto parsed = pipeline::ParseTransforms(std::string(yaml), "transforms.yaml");
  if (!parsed) return;
  static_cast<void>((*parsed)->Target({"orders", R"({"columns":[{"name":"a","type":"text"}]})"}));
  auto transforms = pipeline::TransformChain::Of(**parsed, "orders");
  if (!transforms) return;
  const std::string body = Json::accept(documents) && documents.starts_with('{')
                               ? std::string(documents)
                               : R"({"a":{"b":[1,2.50,null]},"c":"text"})";
  pipeline::Arena arena;
  pipeline::Document document{.id = "1", .routing = "", .body = body, .position = "", .defect = ""};
  pipeline::TransformChain::Made made;
  if (!transforms->Apply(document, arena, made)) return;
  for (const pipeline::Document& one : made.documents) {
    if (!Json::accept(one.body)) __builtin_trap();
  }
}

void CheckBody(const pipeline::Document& document) {
  if (document.defect.empty() && !Json::accept(document.body)) __builtin_trap();
}

void ReadFiles(std::string_view bytes) {
  static constexpr std::array<std::string_view, 6> kKinds{".csv",     ".jsonl",    ".csv.gz",
                                                          ".csv.zst", ".jsonl.gz", ".jsonl.zst"};
  const std::string_view end = kKinds[TakeChoice(bytes, kKinds.size())];
  const std::string path = FileWith(bytes, end);
  const std::string scheme = end.starts_with(".csv") ? "csv:" : "jsonl:";
  if (auto source = pipeline::OpenSource(scheme + path, RealEnv())) ReadAll(**source, CheckBody);
}

void ReadCsv(std::string_view bytes) {
  pipeline::CsvParser parser(TakeChoice(bytes, 2) == 0 ? ',' : '\t');
  if (!parser.Parse(bytes)) return;
  std::string line;
  for (const pipeline::CsvField& field : parser.fields())
    pipeline::AppendCsvField(line, field.text, ',');
}

void Unpack(std::string_view bytes) { static_cast<void>(Gunzip(bytes, 1 << 20)); }

void ScanJson(std::string_view bytes) {
  JsonMembers members(bytes);
  while (const auto member = members.Next()) {
    static_cast<void>(UnescapeJson(member->key));
    static_cast<void>(JsonScalarText(member->value));
  }
  JsonElements elements(bytes);
  while (elements.Next()) {
  }
}

void ReadReplica(std::string_view bytes) {
  const auto file = replica::ParseReplicaFile(bytes, "replica.yaml", RealEnv());
  if (file) static_cast<void>(file->Find("orders"));
}

// Two parts: the statement, and a payload.
void FillSql(std::string_view bytes) {
  const auto [sql, payload] = TakePart(bytes);
  const auto parsed = replica::SqlTemplate::Parse(sql, {"orders"});
  if (!parsed) return;
  static_cast<void>(parsed->Sql(2));
  static_cast<void>(parsed->Values(events::Event{.position = 1,
                                                 .stream = "s",
                                                 .version = 1,
                                                 .id = "i",
                                                 .type = "T",
                                                 .payload = std::string(payload),
                                                 .metadata = "{}"}));
}

void ReadUrl(std::string_view bytes) {
  // A secret reference would read a file of this machine, perhaps an endless one.
  if (bytes.find("${") != std::string_view::npos) return;
  static_cast<void>(ParseUrl(bytes));
  static_cast<void>(store::ParseStoreUrl(std::string(bytes)));
}

void ReadLetters(std::string_view bytes) {
  const auto log = pipeline::DeadLetterLog::Open(FileWith(bytes, ".letters"));
  if (!log) return;
  static_cast<void>(log->bad_lines().ToString());
  for (const auto& [group, letters] : log->letters()) ReadAll(*log->Read(letters), CheckBody);
}

// An event survives a round trip.
void ReadEvent(std::string_view bytes) {
  const auto append = events::AppendFromJson(bytes, "line 1");
  if (!append) return;
  const events::NewEvent& event = append->events.front();
  const auto again = events::AppendFromJson(events::EventToJson({.position = 1,
                                                                 .stream = append->stream,
                                                                 .version = 1,
                                                                 .id = event.id,
                                                                 .type = event.type,
                                                                 .payload = event.payload,
                                                                 .metadata = event.metadata}),
                                            "again");
  if (!again || again->events.front().payload != event.payload) __builtin_trap();
}

void SplitSql(std::string_view bytes) {
  for (const task::SqlStatement& statement : task::SplitSqlScript(bytes)) {
    if (statement.text.size() > bytes.size()) __builtin_trap();
  }
}

// Two parts: a user's rules, and an object of a cluster.
void AdaptMetadata(std::string_view bytes) {
  const auto [yaml, text] = TakePart(bytes);
  auto rules = metadata::RuleSet::BuiltIn();
  if (!rules) __builtin_trap();
  static_cast<void>(rules->AddFile(FileWith(yaml, ".yaml")));
  const auto body = ParseJson(text, "object");
  if (!body) return;
  for (const auto& [kind, name] : metadata::kKinds.table) {
    const metadata::Object object{kind, "a", *body};
    const metadata::Versions versions{{metadata::Engine::kElasticsearch, 2, 4},
                                      {metadata::Engine::kOpenSearch, 2, 19}};
    const metadata::Verdict verdict = rules->Apply(object, versions, {.shards = 2});
    static_cast<void>(metadata::Compare(kind, verdict.body, *body));
  }
}

// A JSON array for an array column.
void WriteArray(std::string_view bytes) {
  const auto rule =
      TakeChoice(bytes, 2) == 0 ? pipeline::NumberRule::Double() : pipeline::NumberRule::Scale(2);
  std::string literal;
  if (pipeline::AppendPgArray(bytes, rule, literal) && !literal.starts_with('{')) __builtin_trap();
}

// A document as a row of COPY: one line, and as many fields as columns.
void CopyRow(std::string_view bytes) {
  using Column = sql::PgTable::Column;
  const auto column = [](const std::string& name, const std::string& type,
                         const std::string& base) {
    return Column{.name = name,
                  .type = type,
                  .portable_type = type,
                  .base = base,
                  .is_array = base.starts_with('_')};
  };
  sql::PgTable table;
  table.columns = {column("id", "bigint", "int8"),
                   column("a", "text", "text"),
                   column("n", "numeric(10,2)", "numeric"),
                   column("f", "real", "float4"),
                   column("j", "jsonb", "jsonb"),
                   column("l", "text[]", "_text"),
                   column("d", "double precision[]", "_float8"),
                   column("b", "bytea", "bytea"),
                   column("t", "timestamp", "timestamp"),
                   column("_id", "text", "text")};
  table.columns[1].has_default = true;
  pipeline::CopyRows rows(table, pipeline::Misfits::kRefuse);
  const std::string body(bytes);
  const pipeline::Document document{
      .id = "a\tb", .routing = "", .body = body, .position = "1", .defect = ""};
  if (!rows.Add(0, document)) return;
  const std::string_view text = rows.text();
  const auto fields = std::count(text.begin(), text.end(), '\t') + 1;
  const auto defaults = rows.rows().front().defaults == 0 ? 0 : 1;
  const auto columns = static_cast<std::ptrdiff_t>(table.columns.size());
  if (std::count(text.begin(), text.end(), '\n') != 1 || fields != columns - defaults) {
    __builtin_trap();
  }
}

constexpr Input kInputs[] = {{"plan", ReadPlan},
                             {"transforms", ApplyTransforms},
                             {"files", ReadFiles},
                             {"csv", ReadCsv},
                             {"gzip", Unpack},
                             {"json_scan", ScanJson},
                             {"replica", ReadReplica},
                             {"sql_template", FillSql},
                             {"url", ReadUrl},
                             {"letters", ReadLetters},
                             {"event", ReadEvent},
                             {"sql_script", SplitSql},
                             {"metadata", AdaptMetadata},
                             {"pg_array", WriteArray},
                             {"copy_row", CopyRow}};

}  // namespace

std::span<const Input> FileInputs() { return kInputs; }

}  // namespace muster::fuzz
