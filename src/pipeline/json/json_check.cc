#include "pipeline/json/json_check.h"

#include <simdjson.h>

#include "pipeline/json/json_text.h"

namespace muster::pipeline {

static_assert(JsonChecker::kPadding >= simdjson::SIMDJSON_PADDING);

class JsonChecker::Parser {
 public:
  // False can also mean that a number is out of simdjson's range.
  bool IsSurelyObject(std::string_view text) {
    simdjson::dom::element document;
    const bool copy_if_unpadded = false;
    return parser_.parse(text.data(), text.size(), copy_if_unpadded).get(document) ==
               simdjson::SUCCESS &&
           document.is_object();
  }

 private:
  simdjson::dom::parser parser_;
};

JsonChecker::JsonChecker() : parser_(std::make_unique<Parser>()) {}
JsonChecker::~JsonChecker() = default;

Status JsonChecker::CheckPadded(std::string_view text) {
  if (parser_->IsSurelyObject(text)) return {};
  return CheckJsonObject(text);
}

bool IsUtf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

}  // namespace muster::pipeline
