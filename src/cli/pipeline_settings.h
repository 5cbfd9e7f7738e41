#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/migrate.h"
#include "muster/work.h"

namespace muster::cli {

class Command;

// Which collections a command includes.
struct CollectionPatterns {
  std::vector<std::string> include;  // empty: everything
  std::vector<std::string> exclude;
};

// Command-line settings of commands that move documents.
struct PipelineSettings {
  std::string source;
  std::string sink;
  std::string transforms;                    // a file; empty: none
  std::optional<size_t> max_docs_per_batch;  // none: the sink's preference
  std::optional<size_t> max_bytes_per_batch;
  CollectionPatterns collections;
  bool merge = false;           // several collections may share a target
  bool documents_only = false;  // targets exist already
  double docs_per_second = 0;
  double mb_per_second = 0;
  std::string limits_file;
  std::string dead_letters;  // a file; empty: the command's default
  std::string max_failures;  // empty: not given
};

// Adds --include and --exclude. `patterns` must live as long as `command`.
void AddCollectionOptions(Command& command, CollectionPatterns& patterns);

// Adds SOURCE, SINK and the options. `settings` must live as long as `command`.
void AddPipelineOptions(Command& command, PipelineSettings& settings);

// The content of the transforms file; empty if none.
Result<std::string> ReadTransforms(const PipelineSettings& settings);
Result<std::unique_ptr<pipeline::TransformPlan>> LoadTransforms(const PipelineSettings& settings);

// A sentence on Counts::added, which explains why more is written than read.
std::string AddedText(int64_t added);

// The limit for failed documents, if given.
Result<std::optional<work::FailureLimit>> LimitOf(const PipelineSettings& settings);

// The collection selection in words, always the same for the same choice.
std::string SelectionOf(const PipelineSettings& settings);

// Collections included by some pattern and excluded by none.
Result<pipeline::CollectionFilter> FilterOf(const CollectionPatterns& patterns);

// Sets a throttle from the options and then, every second while it lives, from the limits file: a
// YAML map of docs_per_second and mb_per_second. A missing file changes nothing; one that becomes
// invalid is logged, and the previous limits stay.
class LimitsWatcher {
 public:
  // kInvalid: the file is invalid. `throttle` and `env` must outlive it.
  static Result<std::unique_ptr<LimitsWatcher>> Start(const PipelineSettings& settings,
                                                      pipeline::Throttle& throttle, Env& env);
  ~LimitsWatcher();
  LimitsWatcher(const LimitsWatcher&) = delete;
  LimitsWatcher& operator=(const LimitsWatcher&) = delete;

 private:
  class Impl;
  explicit LimitsWatcher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::cli
