#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/field_transforms.h"

namespace muster {

// Casts to "integer", "number", "string" or "boolean"; none: no such type. A number becomes a text
// of the same characters, and a text a number of the same characters, however long; what is none
// fails.
std::optional<ValueEdit> CastTo(std::string_view type);

// "***" for everything.
ValueEdit RedactValue();

// The SHA-256 of the value's text in hexadecimal, with a key its HMAC: the same for the same text,
// so that what belongs together still does.
ValueEdit HashValue(std::string key);

// Whether the text is a number as JSON writes it.
bool IsJsonNumber(std::string_view text);

}  // namespace muster
