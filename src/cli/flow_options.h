#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/context.h"
#include "muster/migrate.h"

namespace CLI {
class App;
}

namespace muster::cli {

// The options of every command that moves documents.
struct FlowOptions {
  std::string source;
  std::string sink;
  std::string transforms;            // a file
  std::vector<std::string> include;  // globs, or /regular expressions/
  std::vector<std::string> exclude;
  size_t max_docs_per_batch = BatchLimits{}.max_docs;
  size_t max_bytes_per_batch = BatchLimits{}.max_bytes;
  double docs_per_second = 0;
  double mb_per_second = 0;
  std::string dead_letters;  // a file; empty: the run's name with .dead-letters.jsonl
};

void AddFlowOptions(CLI::App& command, FlowOptions& options);

// Chooses collections by patterns: those that match one of `include`, or all where there is none,
// and none of `exclude`. kInvalid names a pattern that is none.
Result<CollectionFilter> ParseFilter(const std::vector<std::string>& include,
                                     const std::vector<std::string>& exclude);

// Everything that a pipeline refers to, opened by the options.
class Flow {
 public:
  // `run` names the migration in the dead letters.
  static Result<std::unique_ptr<Flow>> Open(const FlowOptions& options, const std::string& run,
                                            Env& env);

  Pipeline& pipeline() { return *pipeline_; }
  const CollectionFilter& allowed() const { return allowed_; }
  const std::string& dead_letters_path() const { return dead_letters_path_; }

 private:
  explicit Flow(Env& env) : throttle_(env) {}

  std::unique_ptr<Source> source_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<TransformPlan> transforms_;
  std::unique_ptr<DeadLetters> dead_letters_;
  Throttle throttle_;
  CollectionFilter allowed_;
  std::string dead_letters_path_;
  std::unique_ptr<Pipeline> pipeline_;
};

// The text of the transforms file, if there is one.
Result<std::string> ReadTransforms(const FlowOptions& options);

}  // namespace muster::cli
