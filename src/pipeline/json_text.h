#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Whether the text is one JSON object and nothing else, by the letter of RFC 8259: any number is
// fine, however large; bad UTF-8, control characters in strings and what is nested deeper than
// 1,000 levels are not. kInvalid says what is wrong and at which byte.
Status CheckJsonObject(std::string_view text);

// Appends text that is known to be UTF-8 as a JSON string, quotes included: AppendJsonString
// without its doubts.
void AppendUtf8JsonString(std::string& json, std::string_view text);

}  // namespace muster
