#pragma once

#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/dead_letter_source.h"

namespace muster {

struct RedriveReport {
  Counts counts = {};
  BadLines bad_lines = {};

  bool IsAll() const { return counts.failed == 0 && bad_lines.count == 0; }
};

// Writes the dead letters of a file into a sink, as they are. What fails again goes to the file
// that AgainPathOf names; the first file is left alone, and doing it twice writes the same.
Result<RedriveReport> RedriveDeadLetters(const std::string& path, const std::string& sink_url,
                                         Env& env, std::stop_token stop);

std::string AgainPathOf(const std::string& path);

}  // namespace muster
