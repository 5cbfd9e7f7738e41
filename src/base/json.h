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

// Reads one JSON value. Stricter than JSON where a tree would silently differ from the text: a key
// twice in one object and an integer beyond 64 bits are errors, like bad UTF-8 and text after the
// value.
//
// kInvalid says "origin:line:column: reason"; `origin` is the file's name, or what a person knows
// the text by.
Result<Json> ParseJson(std::string_view text, std::string_view origin,
                       const JsonLimits& limits = {});

// The same for a file. A file that cannot be read is kInvalid too.
Result<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits = {});

// One line of JSON. Bytes that are not UTF-8 become U+FFFD, so that it never fails.
std::string ToJsonText(const Json& json);

// A text as a JSON string, quotes included, with every character beyond ASCII escaped.
std::string ToAsciiJsonString(std::string_view text);

// The JSON pointer (RFC 6901) of a member or element of what is at `parent`: "/Headers/a~1b".
std::string JsonPointerTo(std::string_view parent, std::string_view name);

// Appends a text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace muster
