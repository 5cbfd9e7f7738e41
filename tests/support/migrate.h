#pragma once

#include <string>

#include "muster/work.h"

namespace muster::testing {

class NoDeadLetters final : public pipeline::DeadLetters {
 public:
  Status Add(const pipeline::DeadLetter&) override { return {}; }
  Status Flush() override { return {}; }
};

// A whole migration, two shards at a time, in small batches.
inline Result<pipeline::Counts> Migrate(pipeline::Source& source, pipeline::Sink& sink,
                                        const std::string& transforms = "") {
  const auto plan = pipeline::ParseTransforms(transforms, "").value();
  NoDeadLetters letters;
  pipeline::Throttle throttle(RealEnv());
  pipeline::Pipeline pipeline{
      RealEnv(), source, *plan, sink, letters, throttle, {.limits = {.max_docs = 9}}};
  work::MigrationObserver nothing;
  return work::MigrateAll(pipeline, {.shard_concurrency = 2}, nothing, {});
}

}  // namespace muster::testing
