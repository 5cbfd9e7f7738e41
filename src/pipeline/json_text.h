#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Whether the text is one JSON object and nothing else, by the letter of RFC 8259: any number is
// fine, however large; bad UTF-8, control characters in strings and what is nested deeper than
// 1,000 levels are not. kInvalid says what is wrong and at which byte.
Status CheckJsonObject(std::string_view text);

// Appends the text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& json, std::string_view text);

}  // namespace muster
