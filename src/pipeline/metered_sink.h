#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster {

// A sink whose writes are counted and timed: muster_sink_write_seconds, muster_sink_refused_total,
// muster_sink_fenced_total and muster_sink_errors_total by code. What it is given must outlive it.
// The first is by `run`.
std::unique_ptr<Sink> NewMeteredSink(Sink& sink, const std::string& run, Metrics& metrics,
                                     Env& env);

}  // namespace muster
