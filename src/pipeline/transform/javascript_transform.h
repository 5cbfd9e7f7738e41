#pragma once

#include <memory>
#include <string>

#include "muster/pipeline.h"

namespace muster::pipeline {

struct JavaScript {
  std::string source;
  std::string origin;  // for messages
  int time_ms = 1'000;
  int memory_mb = 64;
};

// A function (doc, {id, routing}) => doc in a sandbox. Returning nothing skips the document;
// throwing or exceeding a limit fails it. Numbers are kept exactly (JsNumbers::kExact). kInvalid:
// the script does not compile.
Result<std::unique_ptr<Transform>> RunJavaScript(const JavaScript& script);

}  // namespace muster::pipeline
