#pragma once

#include <memory>
#include <string>

#include "muster/pipeline.h"

namespace muster {

// Reads a file of dead letters as documents of the collections that they were of, each once: a
// crash may have left the same letter twice. A letter that holds no JSON object is a document with
// a defect. kInvalid names the file and the line that is no letter.
Result<std::unique_ptr<Source>> OpenDeadLetterSource(const std::string& path);

}  // namespace muster
