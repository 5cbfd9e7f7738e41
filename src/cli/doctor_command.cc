#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/table.h"
#include "core/json.h"
#include "core/secrets.h"
#include "store/store.h"

namespace muster::cli {
namespace {

std::string_view LevelName(store::Finding::Level level) {
  switch (level) {
    case store::Finding::Level::kOk:
      return "ok";
    case store::Finding::Level::kWarn:
      return "warn";
    case store::Finding::Level::kFail:
      return "fail";
  }
  return "fail";
}

Style StyleOf(store::Finding::Level level) {
  switch (level) {
    case store::Finding::Level::kOk:
      return Style::kGood;
    case store::Finding::Level::kWarn:
      return Style::kWarn;
    case store::Finding::Level::kFail:
      return Style::kBad;
  }
  return Style::kBad;
}

void PrintTable(const std::vector<store::Finding>& findings, Context& context) {
  Table table({{"STATUS"}, {"CHECK"}, {"FOUND"}});
  for (const store::Finding& finding : findings) {
    table.AddRow({{std::string(LevelName(finding.level)), StyleOf(finding.level)},
                  {finding.check},
                  {finding.message}});
    if (!finding.hint.empty()) table.AddRow({{}, {}, {"→ " + finding.hint, Style::kDim}});
  }
  table.Print(context.out, context.color);
}

void PrintJson(const std::vector<store::Finding>& findings, Context& context) {
  Json list = Json::array();
  for (const store::Finding& finding : findings) {
    Json object{{"status", LevelName(finding.level)},
                {"check", finding.check},
                {"message", Redact(finding.message)}};
    if (!finding.hint.empty()) object["hint"] = Redact(finding.hint);
    list.push_back(std::move(object));
  }
  context.out << ToJsonText(Json{{"store", Redact(context.store)}, {"findings", list}}) << '\n';
}

Result<int> RunDoctor(Context& context) {
  MUSTER_ASSIGN(std::vector<store::Finding> findings,
                store::DiagnoseStore(context.store, context.env));
  findings.insert(findings.begin(),
                  {store::Finding::Level::kOk, "muster", "muster " MUSTER_VERSION});
  if (context.json) {
    PrintJson(findings, context);
  } else {
    PrintTable(findings, context);
  }
  // The first failure determines the exit code: later ones may only follow from it.
  for (const store::Finding& finding : findings) {
    if (finding.level == store::Finding::Level::kFail) {
      return Error{finding.code, finding.message, finding.hint};
    }
  }
  return kDone;
}

}  // namespace

void AddDoctorCommand(Command& app, Context& context) {
  Command command = app.AddCommand("doctor", "Check the store and this machine, and suggest fixes");
  command.Group("Operate");
  command.Footer(
      "  muster doctor\n"
      "  muster doctor --store 'postgresql://me:${file:/run/secrets/db}@db.example/app'");
  command.Action(context, [&context] { return RunDoctor(context); });
}

}  // namespace muster::cli
