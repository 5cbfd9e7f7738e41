#include "core/guard.h"

#include "core/log.h"
#include "core/secrets.h"

namespace muster {

Error UnexpectedError(std::string_view what, std::string_view words) {
  return Error{Code::kInternal, std::string(what) + ": unexpected error: " + Redact(words),
               "this is a bug: report it with the command that showed it"};
}

void LogUnexpected(std::string_view what, std::string_view words) {
  Log(Level::kError, "unexpected error",
      {{"in", std::string(what)}, {"error", std::string(words)}});
}

}  // namespace muster
