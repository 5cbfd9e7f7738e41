#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"
#include "core/utf8.h"
#include "muster/plan.h"
#include "muster/result.h"

namespace muster::plan {

inline constexpr size_t kMaxTasks = 10'000;
inline constexpr size_t kMaxRanks = 1'000;

// The shortest and the longest expected time.
struct SecondsRange {
  double min = 0;
  double max = 0;
};

struct RetryRule {
  int64_t interval_s = 0;
  int64_t attempts = 0;
  double backoff = 2;
};

inline constexpr EnumNames<Phase, 2> kPhaseNames{{{
    {Phase::kExtract, NameOf(Phase::kExtract)},
    {Phase::kTransform, NameOf(Phase::kTransform)},
}}};

// Defaults for all tasks of a phase.
struct PhaseRules {
  RetryRule retry;
  int64_t timeout_s = 0;
};

// A reference by name, with its position in the file.
struct Reference {
  std::string name;
  TextPosition position = {};
};

// A task of the extract phase: one object of the source.
struct ExtractTask {
  std::string name;
  TextPosition position = {};
  int64_t rows = 0;
  std::optional<SecondsRange> time = {};  // none: estimated from the rows
  PhaseRules rules = {};
  int64_t max_unreadable = 0;  // it fails with more unreadable rows
};

// A task of the transform phase: one script that loads one table.
struct TransformTask {
  std::string name;
  TextPosition position = {};
  std::string file = {};    // as written, within the plan's folder; may be empty if only for AWS
  std::string sha256 = {};  // of the file's contents; empty: not read, or unreadable
  std::string schema = {};
  std::string table = {};
  int64_t dpu = 2;
  std::optional<SecondsRange> time = {};              // none: estimated from the rows it reads
  std::vector<Reference> reads = {};                  // objects; empty: those of its rank
  std::optional<std::vector<Reference>> refers = {};  // "schema.table" of its foreign keys
  // By table, the object whose every row becomes a row of it or is rejected. None: if it reads a
  // single object, that one.
  std::optional<std::map<std::string, Reference>> counts = {};
  PhaseRules rules = {};

  std::string Target() const { return schema + "." + table; }
};

struct Rank {
  int64_t number = 0;
  TextPosition position = {};
  std::string name = {};
  std::string group = {};
  bool external = false;                 // done elsewhere, before the run
  std::vector<std::string> tables = {};  // of an external rank: those it has loaded
  std::vector<int64_t> needs = {};
  bool needs_given = false;  // else it needs the previous rank
  std::vector<Reference> extract = {};
  std::vector<Reference> transform = {};
};

enum class StagingFormat { kJson, kParquet };
enum class FailurePolicy { kFinishRank, kFailFast, kContinue };

// As plans and pinned plans name them. Older versions pinned their numbers: do not reorder.
inline constexpr EnumNames<ProfileKind, 2> kProfileKindNames{{{
    {ProfileKind::kLocal, "local"},
    {ProfileKind::kAws, "aws"},
}}};
inline constexpr EnumNames<StagingFormat, 2> kStagingFormatNames{{{
    {StagingFormat::kJson, "json"},
    {StagingFormat::kParquet, "parquet"},
}}};
inline constexpr EnumNames<FailurePolicy, 3> kFailurePolicyNames{{{
    {FailurePolicy::kFinishRank, "finish-rank"},
    {FailurePolicy::kFailFast, "fail-fast"},
    {FailurePolicy::kContinue, "continue"},
}}};

// Where extraction reads from and transformation writes to.
struct Profile {
  std::string name;
  TextPosition position = {};
  ProfileKind kind = ProfileKind::kLocal;
  std::string source = {};
  std::string target = {};
  std::string staging = {};
  StagingFormat format = StagingFormat::kJson;
  std::vector<std::string> notify = {};
};

// Concurrency limits; none: unlimited.
struct Pools {
  std::optional<int64_t> flows = {};
  std::optional<int64_t> jobs = {};
  std::optional<int64_t> dpu = {};
};

struct Prices {
  double per_row = 0.001;
  double per_dpu_hour = 0.44;
  double per_thousand_transitions = 0.025;
};

// Default speeds, and the effect of changes.
struct Rates {
  SecondsRange extract_rows_per_s = {1'000, 2'000};
  SecondsRange transform_rows_per_dpu_s = {200, 400};
  double start_s = 60;  // startup time of a flow or job
  // Runtime shrinks by this power of the DPU: going from 15 to 20 saves 30 %.
  double dpu_exponent = 1.24;
  double parquet_speedup = 10;
  double parquet_size = 0.3;
};

// Names of external resources; {variables} and {inputs} are replaced.
struct NameTemplates {
  std::string flow = "migration-{customer}-{object}";
  std::string job = "migration-{script}-{environment}";
  std::string status_table = "migration-status-{environment}";
  std::string topic =
      "arn:aws:sns:{region}:{account}:{app-name}-migration-stepfunctions-{environment}-failures";
  std::string log_group = "/aws/vendedlogs/states/{app-name}-migration-stepfunctions-{environment}";
  std::string machine = "{app-name}-migration-stepfunctions-{environment}";
};

struct Plan {
  std::string path;    // of its file
  std::string folder;  // absolute, that of its file
  std::string name;
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> given;  // the overridden ones among them
  // The inputs of a run, with their defaults.
  std::map<std::string, std::optional<std::string>> inputs;
  NameTemplates names;
  Pools pools;
  Prices prices;
  Rates rates;
  FailurePolicy on_failure = FailurePolicy::kFinishRank;
  int64_t max_unreadable = 0;  // of objects without their own
  int64_t poll_s = 60;         // how often a running flow is polled
  std::vector<Profile> profiles;
  std::map<std::string, ExtractTask> objects;
  std::map<std::string, TransformTask> scripts;
  std::vector<Rank> ranks;  // in the order of their numbers

  // The index in `ranks` of the rank with this number.
  std::optional<size_t> FindRank(int64_t number) const;
  // The profile of this name; empty: the first. kInvalid lists the existing ones.
  Result<const Profile*> FindProfile(const std::string& profile) const;
  // The objects that a script of a rank reads.
  std::vector<std::string> ReadBy(const TransformTask& script, const Rank& rank) const;
  // By table, the objects whose rows must all arrive in it.
  std::map<std::string, std::string> CountedBy(const TransformTask& script, const Rank& rank) const;
  // The rank that loads each table; includes external ranks.
  std::map<std::string, int64_t> Loaders() const;
};

// A plan, or all problems of its file.
struct CheckedPlan {
  std::optional<Plan> plan;
  std::vector<std::string> problems;
};

// Reads and checks a file, and hashes its scripts.
CheckedPlan ReadPlan(const std::string& path, const std::map<std::string, std::string>& variables);
// The same from a text; scripts are not read.
CheckedPlan ParsePlan(std::string_view text, const std::string& path,
                      const std::map<std::string, std::string>& variables);

// The same, for callers that need a plan: kInvalid lists all problems.
Result<Plan> LoadPlan(const std::string& path, const PlanOptions& options);

}  // namespace muster::plan
