#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/url.h"
#include "muster/result.h"

namespace muster {

// A libpq connection URI with its secrets expanded, from a URL whose password is given by reference
// or not at all. Query parameters are libpq's, but for those in `own`, and the fragment is left
// out. `what` names the URL in errors: "store URL". kInvalid never repeats a password.
Result<std::string> PostgresUri(const Url& url, std::string_view what,
                                std::span<const std::string_view> own);

}  // namespace muster
