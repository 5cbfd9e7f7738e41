#include "cli/run_follower.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/migration_report.h"
#include "core/json.h"
#include "core/timestamp.h"

namespace muster::cli {
namespace {

using plan::PartState;

constexpr milliseconds kLookEvery{500};
// A large run has a long history: leave most of the time to the work itself.
constexpr int kPauseFactor = 20;
constexpr std::chrono::seconds kPatience{30};

Json RankJson(const plan::RankProgress& rank) {
  Json json{{"event", "rank"},
            {"rank", rank.number},
            {"tasks", rank.tasks},
            {"done", rank.done},
            {"rows", rank.rows},
            {"expected_rows", rank.expected_rows},
            {"rows_per_second", std::round(rank.rows_per_s)}};
  if (rank.next_retry) json["next_retry"] = FormatTimestamp(*rank.next_retry);
  if (rank.left_s) json["eta_s"] = std::ceil(*rank.left_s);
  return json;
}

}  // namespace

std::string TextOf(const plan::RankProgress& rank) {
  std::string text = "rank " + std::to_string(rank.number) + ": ";
  // First, so that a narrow terminal does not cut it off.
  if (rank.left_s)
    text += FormatSeconds(static_cast<uint64_t>(std::ceil(*rank.left_s))) + " left, ";
  if (rank.next_retry) text += "next retry at " + FormatTimestamp(*rank.next_retry) + ", ";
  text += std::to_string(rank.done) + " of " + std::to_string(rank.tasks) + " tasks, " +
          std::to_string(rank.rows) + " of " + std::to_string(rank.expected_rows) + " rows";
  if (rank.rows_per_s > 0) text += ", " + std::to_string(std::llround(rank.rows_per_s)) + " rows/s";
  return text;
}

Result<plan::RunState> RunFollower::Follow(const std::stop_token& stop) {
  Env& env = context_.env;
  MonoTime answered = env.MonoNow();
  while (true) {
    const MonoTime begin = env.MonoNow();
    const Status looked = Look();
    const MonoTime end = env.MonoNow();
    if (looked) answered = end;
    if (!looked && end - answered > kPatience) return looked.error();
    if (run_.status != RunStatus::kInProgress) return run_;
    const auto pause = std::chrono::ceil<milliseconds>((end - begin) * kPauseFactor);
    if (env.Sleep(std::max(kLookEvery, pause), stop)) continue;
    // Usually because it has ended: show that last.
    if (looked) static_cast<void>(Look());
    return run_;
  }
}

Status RunFollower::Look() {
  MUSTER_ASSIGN(const plan::RunState run, runs_.Find(run_.id));
  MUSTER_ASSIGN(const plan::RunReport report, runs_.Report(run));
  MUSTER_ASSIGN(const plan::LiveRun live, runs_.Live(run));
  const plan::RunProgress progress = plan::ProgressOf(report, live, context_.env.WallNow());
  run_ = run;
  if (events_ != Events::kNone) ReportTasks(report, live.rows);
  if (events_ == Events::kJson) ReportRanks(progress);
  ReportRetries(report);
  if (events_ != Events::kNone) WarnIfLeft();
  std::string note;
  for (const plan::RankProgress& rank : progress.running)
    note += (note.empty() ? "" : "; ") + TextOf(rank);
  progress_.Note(note);
  const auto waits = [](const plan::RankProgress& rank) { return rank.next_retry.has_value(); };
  progress_.Estimate(std::ranges::none_of(progress.running, waits));
  // Those of earlier attempts, and of a run that another process drives.
  const bool is_first = !std::exchange(has_looked_, true);
  if (is_first && (run.attempt > 1 || events_ == Events::kNone)) {
    progress_.SetEarlier(progress.done);
  }
  progress_.Update(progress.done, progress.tasks);
  return {};
}

void RunFollower::ReportTasks(const plan::RunReport& report,
                              const std::map<std::string, int64_t>& live) {
  for (const plan::RankReport& rank : report.ranks) {
    for (const plan::TaskReport& task : rank.tasks) {
      const auto row = live.find(task.first_state);
      std::optional<int64_t> rows = task.rows;
      if (!rows && task.state == PartState::kRunning && row != live.end()) rows = row->second;
      // As text only starts and ends: the rest is in the rank's line.
      const std::string state(NameOf(task.state));
      const std::string now =
          events_ == Events::kJson && rows ? state + std::to_string(*rows) : state;
      std::string& told = tasks_[task.first_state];
      if (told == now || (told.empty() && task.state == PartState::kWaiting)) continue;
      told = now;
      const std::string phase(NameOf(task.phase));
      if (events_ == Events::kJson) {
        Json json{{"event", "task"},
                  {"rank", rank.number},
                  {"phase", phase},
                  {"task", task.name},
                  {"status", state}};
        if (rows) json["rows"] = *rows;
        if (task.failure)
          json["error"] = ToJson(plan::CaughtError{task.failure->error, task.failure->cause});
        context_.out << ToJsonText(json) << '\n' << std::flush;
        continue;
      }
      progress_.Say("rank " + std::to_string(rank.number) + ", " + phase + " " + task.name + ": " +
                    state + (rows ? ", " + std::to_string(*rows) + " rows" : "") +
                    (task.failure ? ": " + task.failure->error + ": " + task.failure->cause : ""));
    }
  }
}

// Between retries there may be no progress for minutes.
void RunFollower::ReportRetries(const plan::RunReport& report) {
  for (const plan::RankReport& rank : report.ranks) {
    for (const plan::TaskReport& task : rank.tasks) {
      if (!task.retry || retries_[task.first_state] == task.retry->failed) continue;
      retries_[task.first_state] = task.retry->failed;
      const std::string phase(NameOf(task.phase));
      if (events_ == Events::kJson) {
        context_.out << ToJsonText({{"event", "retry"},
                                    {"rank", rank.number},
                                    {"phase", phase},
                                    {"task", task.name},
                                    {"attempt", task.retry->failed + 1},
                                    {"of", task.retry->of},
                                    {"at", FormatTimestamp(task.retry->next)}})
                     << '\n'
                     << std::flush;
        continue;
      }
      progress_.Say("rank " + std::to_string(rank.number) + ", " + phase + " " + task.name + ": " +
                    RetryText(*task.retry));
    }
  }
}

void RunFollower::ReportRanks(const plan::RunProgress& progress) {
  for (const plan::RankProgress& rank : progress.running) {
    const auto known = ranks_.find(rank.number);
    // Elapsed time alone is not a change.
    if (known != ranks_.end() && known->second.done == rank.done && known->second.rows == rank.rows)
      continue;
    ranks_[rank.number] = rank;
    context_.out << ToJsonText(RankJson(rank)) << '\n' << std::flush;
  }
}

void RunFollower::WarnIfLeft() {
  const bool left = run_.status == RunStatus::kInProgress && !run_.driven;
  if (left && !left_)
    progress_.Say("no process is driving it: 'muster resume " + run_.id + "' resumes it");
  left_ = left;
}

}  // namespace muster::cli
