#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/json.h"
#include "muster/result.h"

namespace muster {

struct JsonLimits {
  size_t bytes = 16 * 1024 * 1024;
  size_t depth = 100;
};

// Parses one JSON value. Stricter than JSON where a tree would silently differ from the text:
// duplicate keys and integers beyond 64 bits are errors, like invalid UTF-8 and trailing text.
//
// kInvalid says "origin:line:column: reason"; `origin` is the file's name, or whatever the user
// knows the text by.
Result<Json> ParseJson(std::string_view text, std::string_view origin,
                       const JsonLimits& limits = {});

// The same for a file. An unreadable file is kInvalid too.
Result<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits = {});

// One line of JSON. Invalid UTF-8 becomes U+FFFD, so it never fails.
std::string ToJsonText(const Json& json);

// A quoted JSON string with all non-ASCII characters escaped.
std::string ToAsciiJsonString(std::string_view text);

// The JSON pointer (RFC 6901) of a member or element of the value at `parent`: "/Headers/a~1b".
std::string JsonPointerTo(std::string_view parent, std::string_view name);

// Appends a quoted JSON string. Invalid UTF-8 becomes U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace muster
