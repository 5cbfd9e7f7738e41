#pragma once

#include <string>

#include "core/json.h"
#include "core/url.h"

namespace muster::serve {

// Path from its segments, which are encoded.
template <class... Segments>
std::string ApiPath(const Segments&... segments) {
  std::string path = "/api/v1";
  ((path += "/" + PercentEncode(segments)), ...);
  return path;
}

// How an action is offered: allowed if `why_not` is empty.
inline Json Offer(const std::string& path, Json body, const std::string& why_not) {
  Json offer{{"path", path}, {"body", std::move(body)}, {"allowed", why_not.empty()}};
  if (!why_not.empty()) offer["why"] = why_not;
  return offer;
}

inline Json CommandLine(const std::string& what, const std::string& command) {
  return {{"what", what}, {"command", command}};
}

}  // namespace muster::serve
