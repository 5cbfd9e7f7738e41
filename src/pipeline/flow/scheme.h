#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// A URL scheme for sources or sinks, and its syntax. An open function must reject unknown query
// parameters with CheckParams.
struct SourceScheme {
  std::string_view scheme;
  std::string_view form;  // "jsonl:FILE-OR-FOLDER"
  Result<std::unique_ptr<Source>> (*open)(const Url& url, Env& env);
};

struct SinkScheme {
  std::string_view scheme;
  std::string_view form;
  Result<std::unique_ptr<Sink>> (*open)(const Url& url, Env& env);
};

// kInvalid: an unknown or duplicate parameter.
Status CheckParams(const Url& url, std::initializer_list<std::string_view> known);

}  // namespace muster::pipeline
