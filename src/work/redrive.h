#pragma once

#include <memory>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/work.h"
#include "pipeline/pipeline.h"

namespace muster::work {

// As RedriveDeadLetters, on this thread alone, and into a sink that is open: `request.sink` is only
// its name, by which the letters' run knows it.
Result<RedriveReport> RedriveInto(const RedriveRequest& request,
                                  std::unique_ptr<pipeline::Sink> sink, Env& env,
                                  std::stop_token stop);

}  // namespace muster::work
