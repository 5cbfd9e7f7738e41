#include <vector>

#include "muster/migrate.h"
#include "pipeline/scheme.h"

namespace muster {
namespace {

// A source is added by a line here, and a header of its own that declares its function.
const std::vector<SourceScheme>& Schemes() {
  static const std::vector<SourceScheme> schemes = {};
  return schemes;
}

}  // namespace

Result<std::unique_ptr<Source>> OpenSource(const std::string& text, Env& env) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  std::string forms;
  for (const SourceScheme& one : Schemes()) {
    if (url.scheme == one.scheme) return one.open(url, env);
    forms += (forms.empty() ? "" : ", ") + std::string(one.form);
  }
  return Error{Code::kInvalid, "there is no source '" + url.scheme + ":'", "use one of " + forms};
}

}  // namespace muster
