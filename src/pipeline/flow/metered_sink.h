#pragma once

#include <memory>
#include <string>

#include "core/metrics.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// Counts and times a sink's writes: muster_sink_write_seconds (by `run`),
// muster_sink_refused_total, muster_sink_fenced_total and muster_sink_errors_total by code.
// Arguments must outlive it.
std::unique_ptr<Sink> NewMeteredSink(Sink& sink, const std::string& run, Metrics& metrics,
                                     Env& env);

}  // namespace muster::pipeline
