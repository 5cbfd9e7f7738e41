#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// csv:FILE-OR-FOLDER: records become objects with a string or null per column.
Result<std::unique_ptr<Source>> OpenCsvSource(const Url& url, Env& env);

// The URL's delimiter; a comma by default.
Result<char> CsvDelimiter(const Url& url);

// The names in a list such as a,b,c; none: not given. kInvalid: an empty or duplicate name.
Result<std::vector<std::string>> CsvColumns(const Url& url);

}  // namespace muster::pipeline
