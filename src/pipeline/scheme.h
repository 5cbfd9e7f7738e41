#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// One way to name a source or a sink: the scheme of its URL, and how such a URL looks. A function
// that opens one has to refuse query parameters that it does not know, by CheckParams.
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

// kInvalid if the URL has a parameter that is not in the list, or one twice.
Status CheckParams(const Url& url, std::initializer_list<std::string_view> known);

}  // namespace muster
