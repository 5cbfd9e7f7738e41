#include "work/redrive.h"

#include "muster/migrate.h"
#include "pipeline/dead_letter_source.h"

namespace muster {
namespace {

// Nobody watches a redrive.
class Unobserved final : public MigrationObserver {
 public:
  void Prepared(const std::vector<TargetChange>& /*changes*/) override {}
  void CollectionStarted(const std::string& /*collection*/,
                         const std::vector<Partition>& /*partitions*/) override {}
  void Advanced(const Partition& /*partition*/, const Progress& /*progress*/) override {}
  void CollectionEnded(const std::string& /*collection*/, const Counts& /*counts*/) override {}
};

}  // namespace

std::string AgainPathOf(const std::string& path) { return path + ".again"; }

Result<RedriveReport> RedriveDeadLetters(const std::string& path, const std::string& sink_url,
                                         Env& env, std::stop_token stop) {
  MUSTER_ASSIGN(const auto source, OpenDeadLetterSource(path));
  MUSTER_ASSIGN(const auto sink, OpenSink(sink_url, env));
  MUSTER_ASSIGN(const auto transforms, ParseTransforms("", ""));
  MUSTER_ASSIGN(const auto dead_letters, OpenDeadLetters(AgainPathOf(path), "redrive"));
  Throttle throttle(env);
  Pipeline pipeline{.env = env,
                    .source = *source,
                    .transforms = *transforms,
                    .sink = *sink,
                    .dead_letters = *dead_letters,
                    .throttle = throttle};
  Unobserved observer;
  MUSTER_ASSIGN(const Counts counts, MigrateAll(pipeline, {}, observer, std::move(stop)));
  return RedriveReport{counts, source->bad_lines()};
}

}  // namespace muster
