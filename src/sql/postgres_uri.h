#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/url.h"
#include "muster/result.h"

namespace muster::sql {

// A libpq connection URI with its secrets expanded, from a URL whose password is a reference or
// absent. Query parameters are libpq's, except those in `own`; the fragment is dropped. `what`
// names the URL in errors: "store URL". kInvalid never repeats a password.
Result<std::string> PostgresUri(const Url& url, std::string_view what,
                                std::span<const std::string_view> own);

}  // namespace muster::sql
