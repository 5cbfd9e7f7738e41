#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::pipeline {

// Whether the text is exactly one JSON object by RFC 8259. Any number is valid, however large;
// invalid UTF-8, control characters in strings and nesting deeper than 1,000 levels are not.
// kInvalid says what is wrong and at which byte.
Status CheckJsonObject(std::string_view text);

// AppendJsonString for text known to be valid UTF-8: appends it as a quoted JSON string, unchecked.
void AppendUtf8JsonString(std::string& json, std::string_view text);

}  // namespace muster::pipeline
