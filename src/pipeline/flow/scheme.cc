#include "pipeline/flow/scheme.h"

#include <algorithm>

namespace muster::pipeline {

Status CheckParams(const Url& url, std::initializer_list<std::string_view> known) {
  for (auto param = url.query.begin(); param != url.query.end(); ++param) {
    const std::string& name = param->first;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string list;
      for (const std::string_view one : known)
        list += (list.empty() ? "" : ", ") + std::string(one);
      return Error{Code::kInvalid, url.scheme + ": unknown parameter '" + name + "'",
                   list.empty() ? "it takes none" : "it takes " + list};
    }
    const bool twice = std::any_of(url.query.begin(), param,
                                   [&](const auto& earlier) { return earlier.first == name; });
    if (twice) return Error{Code::kInvalid, url.scheme + ": parameter '" + name + "' occurs twice"};
  }
  return {};
}

}  // namespace muster::pipeline
