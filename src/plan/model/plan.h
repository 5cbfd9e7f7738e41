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

// From the quickest to the slowest that is expected.
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
    {Phase::kExtract, "extract"},
    {Phase::kTransform, "transform"},
}}};

// What all tasks of a phase do unless they say otherwise.
struct PhaseRules {
  RetryRule retry;
  int64_t timeout_s = 0;
};

// A name that refers to something, and where it is written.
struct Reference {
  std::string name;
  TextPosition position = {};
};

// A task of the extract phase: one object of the source.
struct ExtractTask {
  std::string name;
  TextPosition position = {};
  int64_t rows = 0;
  std::optional<SecondsRange> time = {};  // none: from the rows
  PhaseRules rules = {};
  int64_t max_unreadable = 0;  // more rows than these that cannot be read fail it
};

// A task of the transform phase: one script that loads one table.
struct TransformTask {
  std::string name;
  TextPosition position = {};
  std::string file = {};    // as written, inside the plan's folder; may be empty for AWS alone
  std::string sha256 = {};  // of the file's contents; empty: it could not be read, or was not
  std::string schema = {};
  std::string table = {};
  int64_t dpu = 2;
  std::optional<SecondsRange> time = {};              // none: from the rows it reads
  std::vector<Reference> reads = {};                  // objects; empty: those of its rank
  std::optional<std::vector<Reference>> refers = {};  // "schema.table" of its foreign keys
  // By table, the object each of whose rows becomes one of it or is rejected. None: if it reads one
  // object only, that is it.
  std::optional<std::map<std::string, Reference>> counts = {};
  PhaseRules rules = {};

  std::string Target() const { return schema + "." + table; }
};

struct Rank {
  int64_t number = 0;
  TextPosition position = {};
  std::string name = {};
  std::string group = {};
  bool external = false;                 // done elsewhere, before
  std::vector<std::string> tables = {};  // of an external rank: what it has loaded
  std::vector<int64_t> needs = {};
  bool needs_given = false;  // else it is the rank before
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

// What extract and transform mean.
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

// How many may run at a time; none: unlimited.
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

// How long work takes by default, and what a change would do.
struct Rates {
  SecondsRange extract_rows_per_s = {1'000, 2'000};
  SecondsRange transform_rows_per_dpu_s = {200, 400};
  double start_s = 60;  // until a flow or job works
  // Runtime shrinks by this power of the DPU: 15 to 20 takes 30 % off.
  double dpu_exponent = 1.24;
  double parquet_speedup = 10;
  double parquet_size = 0.3;
};

// Names that others know things by; {variables} and {inputs} are replaced.
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
  std::map<std::string, std::string> given;  // of them, those that are not from the file
  // The inputs of a run, with their defaults.
  std::map<std::string, std::optional<std::string>> inputs;
  NameTemplates names;
  Pools pools;
  Prices prices;
  Rates rates;
  FailurePolicy on_failure = FailurePolicy::kFinishRank;
  int64_t max_unreadable = 0;  // of objects that don't say otherwise
  int64_t poll_s = 60;         // how often a flow is asked whether it has ended
  std::vector<Profile> profiles;
  std::map<std::string, ExtractTask> objects;
  std::map<std::string, TransformTask> scripts;
  std::vector<Rank> ranks;  // in the order of their numbers

  // Where the rank of a number is in `ranks`.
  std::optional<size_t> FindRank(int64_t number) const;
  // The profile of a name, empty: the first. kInvalid names those there are.
  Result<const Profile*> FindProfile(const std::string& profile) const;
  // The objects that a script of a rank reads.
  std::vector<std::string> ReadBy(const TransformTask& script, const Rank& rank) const;
  // The objects whose rows have to be in its tables, by table.
  std::map<std::string, std::string> CountedBy(const TransformTask& script, const Rank& rank) const;
  // The rank that loads each table, those done elsewhere included.
  std::map<std::string, int64_t> Loaders() const;
};

// A plan as it was read, with everything that is wrong. `plan` is there only if nothing is.
struct CheckedPlan {
  std::optional<Plan> plan;
  std::vector<std::string> problems;
};

// Reads and checks a whole file, and notes what its scripts contain.
CheckedPlan ReadPlan(const std::string& path, const std::map<std::string, std::string>& variables);
// The same of a text; scripts are not looked at.
CheckedPlan ParsePlan(std::string_view text, const std::string& path,
                      const std::map<std::string, std::string>& variables);

// The same, for callers that need a plan: kInvalid says everything that is wrong.
Result<Plan> LoadPlan(const std::string& path, const PlanOptions& options);

}  // namespace muster::plan
