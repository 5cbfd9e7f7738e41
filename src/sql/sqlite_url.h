#pragma once

#include <string>
#include <string_view>

#include "core/url.h"
#include "muster/result.h"

namespace muster::sql {

// The file of sqlite:FILE. kInvalid: no file, or a host, in the URL. `what` describes the URL.
Result<std::string> SqliteFileOf(const Url& url, std::string_view what);

}  // namespace muster::sql
