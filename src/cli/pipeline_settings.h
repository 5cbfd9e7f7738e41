#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/migrate.h"

namespace muster::cli {

class Command;

// Which collections a command is to take.
struct CollectionPatterns {
  std::vector<std::string> include;  // empty: everything
  std::vector<std::string> exclude;
};

// What commands that move documents are told on the command line.
struct PipelineSettings {
  std::string source;
  std::string sink;
  std::string transforms;                    // a file; empty: none
  std::optional<size_t> max_docs_per_batch;  // none: as the sink prefers
  std::optional<size_t> max_bytes_per_batch;
  CollectionPatterns collections;
  bool merge = false;  // several collections may go to one
  double docs_per_second = 0;
  double mb_per_second = 0;
  std::string limits_file;
  std::string dead_letters;  // a file; empty: as the command chooses
};

// Adds --include and --exclude. `patterns` must live as long as `command`.
void AddCollectionOptions(Command& command, CollectionPatterns& patterns);

// Adds SOURCE, SINK and the options. `settings` must live as long as `command`.
void AddPipelineOptions(Command& command, PipelineSettings& settings);

// The text of the transforms' file; empty if there is none.
Result<std::string> ReadTransforms(const PipelineSettings& settings);
Result<std::unique_ptr<TransformPlan>> LoadTransforms(const PipelineSettings& settings);

// The options by which collections are chosen, in words and always the same for the same choice.
std::string SelectionOf(const PipelineSettings& settings);

// Collections that some pattern includes and none excludes.
Result<CollectionFilter> FilterOf(const CollectionPatterns& patterns);

// Sets a throttle as the options say and then, every second as long as it lives, as the limits file
// says: a YAML map of docs_per_second and mb_per_second. A file that is not there says nothing; one
// that makes no sense is logged, and what held before still holds.
class LimitsWatcher {
 public:
  LimitsWatcher(const PipelineSettings& settings, Throttle& throttle, Env& env);
  ~LimitsWatcher();
  LimitsWatcher(const LimitsWatcher&) = delete;
  LimitsWatcher& operator=(const LimitsWatcher&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::cli
