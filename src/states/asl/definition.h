#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "muster/result.h"
#include "states/asl/choice.h"
#include "states/asl/json_path.h"
#include "states/asl/query.h"
#include "states/asl/source.h"
#include "states/asl/template.h"

namespace muster::states {

enum class StateType { kTask, kPass, kChoice, kWait, kSucceed, kFail, kParallel, kMap };

// "Task", "Pass", …
inline constexpr EnumNames<StateType, 8> kStateTypes{{{
    {StateType::kTask, "Task"},
    {StateType::kPass, "Pass"},
    {StateType::kChoice, "Choice"},
    {StateType::kWait, "Wait"},
    {StateType::kSucceed, "Succeed"},
    {StateType::kFail, "Fail"},
    {StateType::kParallel, "Parallel"},
    {StateType::kMap, "Map"},
}}};

// The format of the file that an ItemReader reads.
enum class InputType { kObjects, kCsv, kJson, kJsonLines, kManifest, kParquet };
inline constexpr EnumNames<InputType, 5> kInputTypes{{{
    {InputType::kCsv, "CSV"},
    {InputType::kJson, "JSON"},
    {InputType::kJsonLines, "JSONL"},
    {InputType::kManifest, "MANIFEST"},
    {InputType::kParquet, "PARQUET"},
}}};

// The format of the files that a ResultWriter writes, and what it does with outputs before.
enum class OutputType { kJson, kJsonLines };
inline constexpr EnumNames<OutputType, 2> kOutputTypes{{{
    {OutputType::kJson, "JSON"},
    {OutputType::kJsonLines, "JSONL"},
}}};
enum class Transformation { kNone, kFlatten, kCompact };
inline constexpr EnumNames<Transformation, 3> kTransformations{{{
    {Transformation::kNone, "NONE"},
    {Transformation::kFlatten, "FLATTEN"},
    {Transformation::kCompact, "COMPACT"},
}}};

// InputPath or OutputPath: absent, null, or a path.
struct PathField {
  bool null = false;
  std::optional<Query> query;
};

// ResultPath: absent means "$", null discards the result.
struct ResultPathField {
  bool null = false;
  std::optional<JsonPath> path;
};

// A literal or computed value: TimeoutSeconds and TimeoutSecondsPath.
struct Computed {
  std::optional<Json> literal;
  std::optional<Query> query;
  std::string field;  // its name in the definition: "TimeoutSecondsPath"

  explicit operator bool() const { return literal.has_value() || query.has_value(); }
};

struct Retrier {
  std::vector<std::string> errors;
  double interval_s = 1;
  int64_t max_attempts = 3;
  double backoff_rate = 2;
  std::optional<double> max_delay_s;
  bool full_jitter = false;
};

struct Catcher {
  std::vector<std::string> errors;
  std::string next;
  ResultPathField result_path;
  std::optional<Template> output;
  std::optional<Template> assign;
};

struct ChoiceRule {
  Condition condition;
  std::string next;
  std::optional<Template> output;
  std::optional<Template> assign;
};

struct ItemReader {
  std::string resource;
  std::optional<Template> parameters;
  InputType input_type = InputType::kObjects;
  std::string csv_delimiter = ",";
  std::vector<std::string> csv_headers;  // empty: in the first row
  Computed max_items;
};

struct ItemBatcher {
  std::optional<Template> batch_input;
  Computed max_items;
  Computed max_bytes;
};

struct ResultWriter {
  std::string resource;  // empty: results stay in the output
  std::optional<Template> parameters;
  OutputType output_type = OutputType::kJson;
  // If results stay in the output and none is named: kCompact.
  Transformation transformation = Transformation::kNone;
};

struct State {
  std::string name;
  StateType type = StateType::kPass;
  bool jsonata = false;
  std::string next;  // empty: ends here

  PathField input_path;
  PathField output_path;
  ResultPathField result_path;
  std::optional<Template> parameters;  // Parameters or Arguments
  std::optional<Template> result_selector;
  std::optional<Template> output;
  std::optional<Template> assign;

  Value result;  // of a Pass

  std::string resource;  // of a Task
  std::optional<Template> credentials;
  Computed timeout;
  Computed heartbeat;
  std::vector<Retrier> retry;
  std::vector<Catcher> catchers;

  std::vector<ChoiceRule> choices;
  std::string default_next;

  Computed seconds;  // of a Wait
  Computed timestamp;

  Computed error;  // of a Fail
  Computed cause;

  std::vector<int> branches;  // machines of a Parallel; one of a Map
  bool distributed = false;
  Computed items;                          // ItemsPath or Items
  std::optional<Template> items_template;  // Items as an array of JSONata
  std::optional<Template> item_selector;
  Computed max_concurrency;
  Computed tolerated_count;
  Computed tolerated_percentage;
  std::optional<ItemReader> item_reader;
  std::optional<ItemBatcher> item_batcher;
  std::optional<ResultWriter> result_writer;
  std::string label;
};

// A state machine: the outermost, or that of a branch or an iteration.
struct Machine {
  std::string start_at;
  std::map<std::string, State> states;
};

// A whole definition, ready to run. Immutable and safe to share.
struct Definition {
  std::vector<Machine> machines;  // the first is the outermost
  std::optional<int64_t> timeout_s;
  bool uses_context = false;  // may read the input of the execution
  std::string comment;
};

inline constexpr size_t kMaxDefinitionBytes = 1024 * 1024;

struct CheckedDefinition {
  std::shared_ptr<const Definition> definition;  // null: cannot be run
  std::vector<Problem> problems;                 // in the order of the text
};

// Reads a definition and reports all of its problems at once. Without `jsonata`, expressions are
// not checked.
CheckedDefinition CheckDefinition(std::string_view text, JsonataEngine* jsonata);

// Reads a definition to run it. kInvalid lists every problem as "origin:line:column: reason", one
// per line.
Result<std::shared_ptr<const Definition>> ReadDefinition(std::string_view text,
                                                         std::string_view origin,
                                                         JsonataEngine* jsonata);

}  // namespace muster::states
