#include "cli/plan_demo.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "core/json.h"
#include "core/number.h"
#include "muster/runs.h"
#include "muster/store.h"
#include "sql/sqlite.h"

extern char** environ;

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kMigration = "demo";
constexpr int64_t kPart = 50;  // of a whole tenant: 20,000 rows
constexpr const char* kOrphans = "Simpplr__Feed_Item_Comment__c";
constexpr const char* kFailingRank = "2800";
// Once this is staged, about half of the migration is done.
constexpr const char* kHalfway = "staging/demo/Simpplr__Site__c.manifest.json";

Error CannotDo(const std::string& what, const std::error_code& why) {
  return {Code::kUnavailable, what + ": " + why.message()};
}

// Next to the installed program, or in the checkout it was built in.
Result<fs::path> FindExample() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const char* place : {"examples/simpplr", "share/muster/examples/simpplr"}) {
      if (fs::exists(folder / place / "plan.yaml", error)) return folder / place;
    }
  }
  return Error{Code::kNotFound, "the demo's example is missing",
               "run it from a checkout, or install all of it with cmake --install"};
}

Result<std::string> ReadAll(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Error{Code::kUnavailable, path.string() + " cannot be read"};
  return text.str();
}

void Replace(std::string& text, const std::string& old, const std::string& by) {
  if (const size_t at = text.find(old); at != text.npos) text.replace(at, old.size(), by);
}

// Scales the plan's expected rows down with the data, or the time left would be wrong.
std::string OfAPart(const std::string& plan) {
  constexpr std::string_view kRows = "{rows: ";
  std::string part;
  size_t done = 0;
  for (size_t at = plan.find(kRows); at != plan.npos; at = plan.find(kRows, done)) {
    const size_t number = at + kRows.size();
    const size_t end = plan.find_first_not_of("0123456789", number);
    const int64_t rows =
        ParseNumber<int64_t>(plan.substr(number, end - number)).value_or(0) / kPart;
    part += plan.substr(done, number - done) + std::to_string(std::max<int64_t>(1, rows));
    done = end;
  }
  return part + plan.substr(done);
}

const char* NameOf(ProgressMode mode) {
  switch (mode) {
    case ProgressMode::kTty:
      return "tty";
    case ProgressMode::kPlain:
      return "plain";
    case ProgressMode::kJson:
      return "json";
    case ProgressMode::kNone:
      break;
  }
  return "none";
}

int64_t NumberIn(const Json& result, const char* field) {
  return result.is_object() ? result.value(field, int64_t{0}) : 0;
}

// A script may load more tables than its own.
int64_t LoadedBy(const Json& result) {
  int64_t rows = 0;
  if (result.is_object() && result.contains("tables")) {
    for (const auto& [table, loaded] : result["tables"].items()) rows += loaded.get<int64_t>();
  }
  return rows;
}

class PlanDemo {
 public:
  PlanDemo(bool keep, Context& context)
      : keep_(keep), context_(context), started_(context.env.MonoNow()) {}

  Result<int> Run() {
    MUSTER_ASSIGN(example_, FindExample());
    std::string name = (fs::temp_directory_path() / "muster-demo-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return Error{Code::kUnavailable, "cannot create a folder in " + name,
                   "set TMPDIR to a writable folder"};
    }
    folder_ = name;
    Result<int> code = RunInFolder();
    std::error_code ignored;
    if (!keep_) fs::remove_all(folder_, ignored);
    return code;
  }

 private:
  Result<int> RunInFolder() {
    MUSTER_TRY(Prepare());
    MUSTER_TRY(Perform());
    return Report();
  }

  // A copy of the example with shorter retries, part of its data, and an empty target.
  Status Prepare() {
    MUSTER_ASSIGN(std::string plan, ReadAll(example_ / "plan.yaml"));
    Replace(plan, "interval: 30s", "interval: 1s");
    Replace(plan, "interval: 120s", "interval: 1s");
    std::ofstream(folder_ / "plan.yaml") << OfAPart(plan);
    std::error_code error;
    fs::copy(example_ / "scripts", folder_ / "scripts", error);
    if (error) return CannotDo("the example cannot be copied", error);
    MUSTER_TRY(MakeData({"--orphans", kOrphans}));
    MUSTER_ASSIGN(const std::string schema, ReadAll(example_ / "schema/sqlite.sql"));
    MUSTER_ASSIGN(const auto target, OpenTarget(sql::SqliteDb::Mode::kCreate));
    MUSTER_TRY(target->Execute(schema));
    return target->Execute("INSERT INTO accounts_tenants VALUES ('customer-1', 'Customer')");
  }

  Status MakeData(const std::vector<std::string>& more) {
    std::vector<std::string> command{(example_ / "generate").string(), "--scale",
                                     std::to_string(1.0 / kPart)};
    command.insert(command.end(), more.begin(), more.end());
    command.emplace_back("salesforce.db");
    MUSTER_ASSIGN(const pid_t pid, Spawn(command[0], command));
    MUSTER_ASSIGN(const int status, Wait(pid, ""));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return Error{Code::kUnavailable, "cannot generate the example's data",
                 "it needs Python 3: apt-get install python3"};
  }

  Status Perform() {
    Say("20,000 rows of a tenant in Salesforce are migrated to another database, rank by rank");
    MUSTER_ASSIGN(int status, Muster({"run", "plan.yaml", "--input", "tenantId=customer-1",
                                      "--input", "migrationId=demo"},
                                     kHalfway));
    if (WIFSIGNALED(status)) {
      Say("the process is killed (kill -9) about halfway; its lease ends within 15 s");
      MUSTER_ASSIGN(status, Muster({"resume", kMigration}, ""));
    }
    MUSTER_ASSIGN(const Seen seen, Look());
    const plan::RunState& run = seen.run;
    if (run.status != RunStatus::kFailed)
      return Error{Code::kInternal,
                   "the migration should have failed, but is " + std::string(NameOf(run.status))};
    Say("it resumed where it stopped, and failed: " + run.cause);
    MUSTER_ASSIGN(const std::string news, ReadAll(folder_ / "notifications.jsonl"));
    Say("notifications.jsonl: " + MessageIn(news));
    Say("a comment referred to a missing post; it is fixed in Salesforce");
    MUSTER_TRY(MakeData({}));
    MUSTER_ASSIGN(status, Muster({"retry", kMigration, "--rank", kFailingRank}, ""));
    if (WIFEXITED(status) && WEXITSTATUS(status) == kDone) return {};
    return Error{Code::kInternal, "the migration should have been completed",
                 "see its output above"};
  }

  static std::string MessageIn(const std::string& news) {
    const Json line = Json::parse(news.substr(0, news.find('\n')), nullptr, false);
    if (!line.is_object() || !line.contains("message") || !line["message"].is_object()) return news;
    return line["message"].value("message", "");
  }

  struct Totals {
    int64_t objects = 0;
    int64_t scripts = 0;
    int64_t extracted = 0;
    int64_t loaded = 0;
    int64_t rejected = 0;
  };

  // Adds a row for each rank, by the run's output.
  static Totals AddRanks(const plan::RunReport& report, const Json& output, Table& table) {
    Totals totals;
    for (const plan::RankReport& rank : report.ranks) {
      Totals sum;
      for (const plan::TaskReport& task : rank.tasks) {
        if (task.phase == plan::Phase::kExtract) {
          ++totals.objects;
          sum.extracted += NumberIn(output["appflow"][task.name], "rows");
          continue;
        }
        ++totals.scripts;
        sum.loaded += LoadedBy(output["glue"][task.name]);
        sum.rejected += NumberIn(output["glue"][task.name], "rejected");
      }
      table.AddRow(
          {{std::to_string(rank.number)},
           {rank.name},
           {std::to_string(sum.extracted)},
           {std::to_string(sum.loaded)},
           {std::to_string(sum.rejected), sum.rejected > 0 ? Style::kWarn : Style::kNone}});
      totals.extracted += sum.extracted;
      totals.loaded += sum.loaded;
      totals.rejected += sum.rejected;
    }
    return totals;
  }

  Result<int> Report() {
    MUSTER_ASSIGN(const Seen seen, Look());
    const plan::RunState& run = seen.run;
    MUSTER_ASSIGN(const auto target, OpenTarget(sql::SqliteDb::Mode::kExisting));
    MUSTER_ASSIGN(const int64_t broken,
                  target->QueryInt("SELECT count(*) FROM pragma_foreign_key_check"));
    const Json output = Json::parse(run.output, nullptr, false);
    if (!output.is_object()) return Error{Code::kInternal, "the migration has no result"};
    constexpr auto kRight = Table::Align::kRight;
    Table table({{"RANK", kRight},
                 {"NAME"},
                 {"EXTRACTED", kRight},
                 {"LOADED", kRight},
                 {"REJECTED", kRight}});
    const Totals totals = AddRanks(seen.report, output, table);
    if (context_.json) {
      context_.out << ToJsonText(Json{{"status", NameOf(run.status)},
                                      {"attempt", run.attempt},
                                      {"objects", totals.objects},
                                      {"scripts", totals.scripts},
                                      {"extracted", totals.extracted},
                                      {"loaded", totals.loaded},
                                      {"rejected", totals.rejected},
                                      {"broken_references", broken}})
                   << '\n';
      return broken == 0 ? kDone : kFailed;
    }
    table.Print(context_.out, context_.color);
    context_.out << '\n'
                 << NameOf(run.status) << " in attempt " << run.attempt << ": " << totals.objects
                 << " objects, " << totals.scripts << " scripts, " << totals.extracted
                 << " rows extracted; " << broken << " broken references in the target\n";
    if (keep_) {
      context_.out << "Everything is in " << folder_.string()
                   << "; to see it in a browser: muster serve --store sqlite:"
                   << (folder_ / "muster.db").string() << '\n';
    }
    context_.out << "Next: muster plan explain " << (example_ / "plan.yaml").string() << '\n';
    return broken == 0 ? kDone : kFailed;
  }

  // Runs this program in the demo's folder as a user would, to its end or until a file appears:
  // then it is killed. Returns waitpid's status.
  Result<int> Muster(const std::vector<std::string>& arguments, const std::string& kill_when) {
    std::vector<std::string> command{"muster"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::string shown = "$";
    for (const std::string& word : command) shown += " " + word;
    Say(shown);
    command.push_back(std::string("--progress=") + NameOf(context_.progress));
    command.emplace_back("--store=sqlite:muster.db");
    MUSTER_ASSIGN(const pid_t pid, Spawn("/proc/self/exe", command));
    return Wait(pid, kill_when);
  }

  // Its stdout is summarised at the end.
  Result<pid_t> Spawn(const std::string& program, const std::vector<std::string>& command) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const std::string output = (folder_ / "output.txt").string();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder_.c_str());
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    // Its own process group: Ctrl-C is for us, and we forward it.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t pid = 0;
    const int failed =
        posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
      return CannotDo(command[0] + " cannot be started",
                      std::error_code(failed, std::generic_category()));
    return pid;
  }

  Result<int> Wait(pid_t pid, const std::string& kill_when) {
    bool killed = false;
    bool told = false;
    for (int status = 0;;) {
      if (waitpid(pid, &status, WNOHANG) == pid) {
        if (told) return Error{Code::kCancelled, "the demo was interrupted", "run it again"};
        return status;
      }
      std::error_code ignored;
      if (!killed && !kill_when.empty() && fs::exists(folder_ / kill_when, ignored)) {
        killed = true;
        kill(pid, SIGKILL);
      }
      if (!told && signals_.Token().stop_requested()) {
        told = true;
        kill(pid, SIGTERM);
      }
      context_.env.Sleep(5ms, {});
    }
  }

  Result<std::unique_ptr<sql::SqliteDb>> OpenTarget(sql::SqliteDb::Mode mode) {
    return sql::SqliteDb::Open((folder_ / "zeus.db").string(), mode, 5s);
  }

  // The migration as its store has it.
  struct Seen {
    plan::RunState run;
    plan::RunReport report;
  };
  Result<Seen> Look() {
    MUSTER_ASSIGN(const auto store,
                  store::OpenStore("sqlite:" + (folder_ / "muster.db").string(), context_.env));
    const auto runs = plan::NewRunEngine(*store, {}, {}, context_.env);
    MUSTER_ASSIGN(plan::RunState run, runs->Find(kMigration));
    MUSTER_ASSIGN(plan::RunReport report, runs->Report(run));
    return Seen{std::move(run), std::move(report)};
  }

  void Say(const std::string& event) {
    if (context_.progress == ProgressMode::kNone) return;
    if (context_.progress == ProgressMode::kJson) {
      context_.err << ToJsonText(Json{{"event", event}}) << '\n';
      return;
    }
    char time[16];
    std::snprintf(time, sizeof time, "%6.1f s  ",
                  std::chrono::duration<double>(context_.env.MonoNow() - started_).count());
    // A killed process leaves its progress bar behind.
    context_.err << (context_.progress == ProgressMode::kTty ? "\r\x1b[K" : "") << time << event
                 << std::endl;
  }

  const bool keep_;
  Context& context_;
  const MonoTime started_;
  const StopOnSignals signals_;
  fs::path example_;
  fs::path folder_;
};

}  // namespace

Result<int> RunPlanDemo(bool keep, Context& context) { return PlanDemo(keep, context).Run(); }

}  // namespace muster::cli
