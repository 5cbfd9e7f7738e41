#include "store/dynamodb/dynamodb_place.h"

#include <algorithm>

#include "net/http.h"

namespace muster::store {
namespace {

constexpr const char* kForm =
    "write dynamodb://REGION/TABLE, for example dynamodb://eu-west-1/muster";

Error Invalid(std::string message, std::string hint) {
  return Error{Code::kInvalid, std::move(message), std::move(hint)};
}

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The region becomes part of a host name.
bool IsRegion(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c == '-' || (IsLetterOrDigit(c) && !(c >= 'A' && c <= 'Z'));
  });
}

bool IsTable(const std::string& text) {
  constexpr size_t kMinBytes = 3;
  constexpr size_t kMaxBytes = 255;
  return text.size() >= kMinBytes && text.size() <= kMaxBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '_' || c == '.' || c == '-' || IsLetterOrDigit(c); });
}

std::string EndpointOf(const std::string& region) {
  const bool china = region.starts_with("cn-");
  return "https://dynamodb." + region + ".amazonaws.com" + (china ? ".cn" : "");
}

Status SetParameter(const std::string& name, const std::string& value, DynamoDbPlace& place) {
  if (name == "namespace") return {};  // common to all stores
  if (name == "endpoint") {
    auto target = net::SplitHttpUrl(value);
    if (!target) {
      return Invalid("endpoint of the store URL: " + target.error().message,
                     "write ?endpoint=http://HOST:PORT");
    }
    if (!target->query.empty() || target->path.size() > 1) {
      return Invalid("the endpoint of the store URL has a path",
                     "write only ?endpoint=http://HOST:PORT");
    }
    place.endpoint = value.substr(0, value.size() - target->path.size());
    return {};
  }
  if (name == "ca") {
    place.ca_file = value;
    return {};
  }
  if (name == "create" && (value == "true" || value == "false")) {
    place.create = value == "true";
    return {};
  }
  if (name == "create") {
    return Invalid("create is neither true nor false",
                   "write ?create=true to have a missing table created");
  }
  return Invalid("store URL has an unknown parameter '" + name + "'",
                 "known parameters: namespace, create, endpoint, ca");
}

}  // namespace

std::string DynamoDbPlace::Name() const { return "DynamoDB table " + table + " in " + region; }

Result<DynamoDbPlace> ParseDynamoDbPlace(const Url& url) {
  if (!url.user.empty() || !url.password.empty()) {
    return Invalid("store URL contains credentials",
                   "leave them out: they come from where AWS's own tools look for them, first of "
                   "all from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  }
  if (url.port) return Invalid("store URL has a port after the region", "write ?endpoint=URL");
  DynamoDbPlace place{.region = url.host,
                      .table = url.path.empty() ? "" : url.path.substr(1),
                      .endpoint = EndpointOf(url.host)};
  if (!IsRegion(place.region)) return Invalid("store URL names no AWS region", kForm);
  if (!IsTable(place.table)) {
    return Invalid("store URL names no DynamoDB table: 3 to 255 letters, digits and -_.", kForm);
  }
  for (const auto& [name, value] : url.query) MUSTER_TRY(SetParameter(name, value, place));
  return place;
}

}  // namespace muster::store
