#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/result.h"

namespace muster {

// A parsed URL, percent-decoded. Both forms are supported:
//   scheme:path?query#fragment
//   scheme://user:password@host:port/path?query#fragment
// `path` keeps its leading slash. The host of `[::1]` is `::1`.
//
// Secret references such as ${file:/run/secrets/db} are opaque: their colons and slashes separate
// nothing, and they are not decoded. ExpandSecrets replaces them later.
struct Url {
  std::string scheme;  // in lower case
  std::string user;
  std::string password;
  std::string host;
  std::optional<uint16_t> port;
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;  // in the order written
  std::string fragment;

  // The value of the first query parameter of that name.
  std::optional<std::string> Param(std::string_view name) const;
};

// Parses a URL of at most 8 KiB. kInvalid says which part is wrong and never repeats any text: a
// misplaced character may have put a password anywhere.
Result<Url> ParseUrl(std::string_view text);

// Encodes bytes for one part of a URL: everything but letters, digits and `-._~` becomes %XX.
std::string PercentEncode(std::string_view text);

// The same URL with an absolute path, if it is of a file by a path relative to the current folder
// (`jsonl:data/orders.jsonl`): what it names does not depend on the folder any more. Any other text
// is returned as it is.
std::string AbsoluteUrl(std::string_view text);

// The same URL without this query parameter.
std::string WithoutParam(std::string_view text, std::string_view name);

}  // namespace muster
