#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "core/json.h"
#include "core/log.h"
#include "sim/sim.h"

namespace muster::cli {
namespace {

using sim::CampaignResult;
using sim::SeedResult;
using sim::WorkloadInfo;

struct SimOptions {
  std::string workload = "all";
  std::string seed;   // one
  std::string seeds;  // FIRST..LAST
  double minutes = 0;
  bool hash = false;
};

Result<uint64_t> ParseSeed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Error{Code::kInvalid, "'" + std::string(text) + "' is not a seed",
                 "a seed is a whole number; a range is FIRST..LAST"};
  }
  return seed;
}

Result<sim::Campaign> CampaignOf(const SimOptions& options, Env& env) {
  sim::Campaign campaign{.first = 1, .last = 1'000};
  if (!options.seed.empty()) {
    MUSTER_ASSIGN(campaign.first, ParseSeed(options.seed));
    campaign.last = campaign.first;
  } else if (!options.seeds.empty()) {
    const size_t dots = options.seeds.find("..");
    if (dots == std::string::npos) {
      return Error{Code::kInvalid, "'" + options.seeds + "' is not a range", "write FIRST..LAST"};
    }
    MUSTER_ASSIGN(campaign.first, ParseSeed(options.seeds.substr(0, dots)));
    MUSTER_ASSIGN(campaign.last, ParseSeed(options.seeds.substr(dots + 2)));
    if (campaign.last < campaign.first) {
      return Error{Code::kInvalid, "the range " + options.seeds + " is empty", "write FIRST..LAST"};
    }
  } else if (options.minutes > 0) {
    // New seeds: a soak that repeats the same ones finds nothing new.
    campaign.first = env.Random() >> 24;
    campaign.last = UINT64_MAX - 1;
  }
  return campaign;
}

Result<std::vector<WorkloadInfo>> ChosenWorkloads(const std::string& name) {
  if (name == "all") return sim::Workloads();
  std::string names;
  for (const WorkloadInfo& workload : sim::Workloads()) {
    if (workload.name == name) return std::vector<WorkloadInfo>{workload};
    names += (names.empty() ? "" : ", ") + std::string(workload.name);
  }
  return Error{Code::kInvalid, "unknown workload '" + name + "'", "expected one of: " + names};
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string FaultsOf(const SeedResult& result) {
  std::string names;
  for (size_t kind = 0; kind < sim::kFaultKinds; ++kind) {
    if (!result.plan.allowed[kind]) continue;
    names += (names.empty() ? "" : ", ") + std::string(FaultName(static_cast<sim::Fault>(kind)));
  }
  return names.empty() ? "none" : names;
}

void PrintFailure(const WorkloadInfo& workload, const SeedResult& minimal, std::ostream& out) {
  for (const std::string& line : minimal.trace) out << line << '\n';
  out << "\nseed " << minimal.seed << " breaks " << minimal.violation->invariant << ": "
      << minimal.violation->message << "\n  with " << minimal.faults
      << " faults; kinds that matter: " << FaultsOf(minimal) << "\n  again: muster sim --workload "
      << workload.name << " --seed " << minimal.seed << "\n\n";
}

Json ToJson(const WorkloadInfo& workload, const CampaignResult& result) {
  Json json{{"workload", workload.name},
            {"seeds", result.seeds},
            {"faults", result.faults},
            {"failed", result.failure.has_value()}};
  for (const std::string& what : workload.sometimes) {
    const auto found = result.sometimes.find(what);
    json["sometimes"][what] = found == result.sometimes.end() ? 0 : found->second;
  }
  if (result.failure) {
    json["failure"] = Json{{"seed", result.failure->seed},
                           {"invariant", result.failure->violation->invariant},
                           {"message", result.failure->violation->message},
                           {"trace", result.failure->trace}};
  }
  return json;
}

class SimRun {
 public:
  SimRun(const SimOptions& options, Context& context) : options_(options), context_(context) {}

  Result<int> Run() {
    MUSTER_ASSIGN(const auto workloads, ChosenWorkloads(options_.workload));
    MUSTER_ASSIGN(sim::Campaign campaign, CampaignOf(options_, context_.env));
    StopOnSignals signals;
    SetLogging(Level::kOff, LogFormat::kText);  // simulated failures are not worth logging
    bool failed = false;
    Json reports = Json::array();
    for (const WorkloadInfo& workload : workloads) {
      const CampaignResult result = RunOne(workload, campaign, signals.Token());
      failed |= result.failure.has_value();
      if (context_.json) {
        reports.push_back(ToJson(workload, result));
      } else {
        Report(workload, campaign.first, result);
      }
      if (signals.Token().stop_requested()) break;
    }
    if (context_.json) context_.out << ToJsonText(reports) << '\n';
    if (failed) return kFailed;
    return signals.Token().stop_requested() ? kInterrupted : kDone;
  }

 private:
  CampaignResult RunOne(const WorkloadInfo& workload, sim::Campaign campaign,
                        std::stop_token signalled) {
    const bool timed = options_.minutes > 0;
    std::stop_source stop;
    std::stop_callback on_signal(signalled, [&] { stop.request_stop(); });
    Progress progress(
        context_.progress, context_.err, context_.env, "sim " + std::string(workload.name),
        timed ? 0 : campaign.last - campaign.first + 1, [] { return TerminalWidth(2); });
    const MonoTime end =
        context_.env.MonoNow() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::duration<double>(options_.minutes * 60));
    campaign.jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    campaign.stop = stop.get_token();
    campaign.progress = [&](uint64_t finished) {
      progress.Update(finished);
      if (timed && context_.env.MonoNow() >= end) stop.request_stop();
    };
    CampaignResult result = RunCampaign(workload, campaign);
    progress.Finish();
    if (result.failure) result.failure = Minimise(workload, *result.failure);
    return result;
  }

  void Report(const WorkloadInfo& workload, uint64_t first, const CampaignResult& result) {
    std::ostream& out = context_.out;
    if (options_.hash) {
      for (const auto& [seed, hash] : result.trace_hashes) out << seed << ' ' << Hex(hash) << '\n';
      return;
    }
    if (result.failure) PrintFailure(workload, *result.failure, out);
    Table table({{"IN SEEDS", Table::Align::kRight}, {"IT HAPPENED THAT"}});
    for (const std::string& what : workload.sometimes) {
      const auto found = result.sometimes.find(what);
      const int64_t seeds = found == result.sometimes.end() ? 0 : found->second;
      table.AddRow({{std::to_string(seeds), seeds == 0 ? Style::kWarn : Style::kNone}, {what}});
    }
    table.Print(out, context_.color);
    out << workload.name << ": " << result.seeds << " seeds";
    if (options_.minutes > 0) out << " from " << first << " on";
    out << ", " << result.faults << " faults, " << (result.failure ? "1 failed" : "0 failed")
        << '\n';
  }

  const SimOptions& options_;
  Context& context_;
};

}  // namespace

void AddSimCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("sim", "Run the coordination code in a simulated world full of faults");
  command.Group("Operate");
  auto options = std::make_shared<SimOptions>();
  command.AddOption("--workload", options->workload, "Which scenario; all by default")
      .TypeName("NAME");
  Option seed = command.AddOption("--seed", options->seed, "Run one seed").TypeName("N");
  Option seeds = command.AddOption("--seeds", options->seeds, "Run a range of seeds (1..1000)")
                     .TypeName("A..B");
  Option minutes =
      command.AddOption("--minutes", options->minutes, "Run new seeds for this long").TypeName("M");
  seed.Excludes(seeds).Excludes(minutes);
  seeds.Excludes(minutes);
  command.AddFlag("--hash", options->hash, "Print the hash of each seed's trace instead");
  command.Footer(
      "  muster sim --seeds 1..2000\n"
      "  muster sim --workload work --seed 42");
  command.Action(context, [options, &context] { return SimRun(*options, context).Run(); });
}

}  // namespace muster::cli
