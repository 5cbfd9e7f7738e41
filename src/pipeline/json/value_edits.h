#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/transform/field_transforms.h"

namespace muster::pipeline {

// Casts to "integer", "number", "string" or "boolean"; none: no such type. Numbers and strings keep
// their characters, however long; anything that cannot be cast fails.
std::optional<ValueEdit> CastTo(std::string_view type);

// "***" for any value.
ValueEdit RedactValue();

// The hex SHA-256 of the value's text, or its HMAC with a key: equal texts stay equal, so joins
// still work.
ValueEdit HashValue(std::string key);

// Whether the text is a valid JSON number.
bool IsJsonNumber(std::string_view text);

}  // namespace muster::pipeline
