#pragma once

#include <memory>
#include <string>

#include "muster/json.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// A script in a sandbox: a function, or an object with the functions `transform`, `metadata` or
// both. Numbers are kept exactly (JsNumbers::kExact).
struct JavaScript {
  std::string source;
  std::string origin;  // for messages
  int time_ms = 1'000;
  int memory_mb = 64;
};

// The function itself, or `transform`: (doc, {id, routing, collection, deleted}) => what to write.
// An object is the new document, with the same id and routing; an array has any number of documents
// as {id, routing, index, source}; nothing or null skips the document. Throwing, exceeding a limit
// or returning anything else fails it. Null: the script has no such function. kInvalid: it does not
// compile.
Result<std::unique_ptr<Transform>> RunJavaScript(const JavaScript& script,
                                                 const std::string& collection);

// Whether the script has the function `metadata`. kInvalid: it does not compile.
Result<bool> EditsMetadata(const JavaScript& script);

// What `metadata`, called as (metadata, {collection}), makes of a collection's metadata. kInvalid:
// it throws, exceeds a limit, or returns what is not metadata.
Result<Json> EditMetadataByScript(const JavaScript& script, const Json& metadata,
                                  const std::string& collection);

}  // namespace muster::pipeline
