#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/pipeline_settings.h"
#include "core/metrics.h"
#include "muster/migrate.h"

namespace muster::cli {

// A pipeline opened from the command line: source, sink, transforms and dead letters.
class Flow {
 public:
  // With `metrics`, the sink's writes are counted. `run` names the migration in dead letters, which
  // go to `dead_letters` unless the command line says otherwise.
  static Result<std::unique_ptr<Flow>> Open(const PipelineSettings& settings,
                                            const std::string& run, const std::string& dead_letters,
                                            Env& env, Metrics* metrics = nullptr);

  pipeline::Pipeline& pipeline() { return *pipeline_; }
  const pipeline::CollectionFilter& allowed() const { return allowed_; }

  // Why there is nothing to do; none: collections are selected, or the source is unreachable.
  std::optional<std::string> NothingSelected();

  const std::string& dead_letters_path() const { return dead_letters_path_; }

 private:
  explicit Flow(Env& env) : throttle_(env) {}

  std::unique_ptr<pipeline::Source> source_;
  std::unique_ptr<pipeline::Sink> opened_;
  std::unique_ptr<pipeline::Sink> existing_;
  pipeline::Sink* sink_ = nullptr;
  std::unique_ptr<pipeline::Sink> metered_;
  std::unique_ptr<pipeline::TransformPlan> transforms_;
  std::unique_ptr<pipeline::DeadLetters> dead_letters_;
  pipeline::Throttle throttle_;
  std::unique_ptr<LimitsWatcher> limits_;
  pipeline::CollectionFilter allowed_;
  std::string dead_letters_path_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
};

}  // namespace muster::cli
