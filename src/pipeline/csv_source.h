#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster {

// csv:FILE-OR-FOLDER: records become objects with a text, or null, for each column.
Result<std::unique_ptr<Source>> OpenCsvSource(const Url& url, Env& env);

// The delimiter that a URL names, a comma if it names none.
Result<char> CsvDelimiter(const Url& url);

// The names of a list such as a,b,c; none: the URL has none. kInvalid: a name is empty or there
// twice.
Result<std::vector<std::string>> CsvColumns(const Url& url);

}  // namespace muster
