#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "serve/web_message.h"

namespace muster::serve {

// A field of a request's body, or a parameter of its query.
struct Field {
  enum class Type { kFlag, kNumber, kText, kTexts };  // kTexts: a parameter that may be repeated
  std::string name;
  Type type = Type::kText;
  std::string description = {};
  int64_t least = 0;  // of a number
  int64_t most = 0;
  std::optional<int64_t> fallback = {};  // of a number
  bool required = false;                 // for the document; the handler reports what is missing
};

// A JSON object with known fields of the right types; an empty text is an empty object.
// kInvalid: anything else.
Result<Json> ReadBody(const std::string& text, const std::vector<Field>& fields);

// The query's known parameters as an object; missing numbers get their fallbacks. kInvalid: not a
// number, or out of range. Other parameters are ignored.
Result<Json> ReadQuery(const WebRequest& request, const std::vector<Field>& fields);

}  // namespace muster::serve
