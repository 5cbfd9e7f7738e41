#pragma once

#include <memory>
#include <string>

#include "core/file_calls.h"
#include "muster/migrate.h"

namespace muster::pipeline {

// OpenDeadLetters on injected file calls.
std::unique_ptr<DeadLetters> NewDeadLetterFile(const std::string& path, const std::string& run,
                                               FileCalls& calls);

}  // namespace muster::pipeline
