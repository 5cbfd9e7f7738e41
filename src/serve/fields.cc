#include "serve/fields.h"

#include <charconv>

#include "core/json_fields.h"

namespace muster::serve {
namespace {

constexpr size_t kMaxBodyJsonDepth = 4;

bool HasType(const Json& value, Field::Type type) {
  switch (type) {
    case Field::Type::kFlag:
      return value.is_boolean();
    case Field::Type::kNumber:
      return value.is_number_integer();
    case Field::Type::kText:
      return value.is_string();
    case Field::Type::kTexts:
      return false;  // only in queries
  }
  return false;
}

// Checks all 64 bits before anything is narrowed.
bool IsInRange(const Json& number, const Field& field) {
  if (number.is_number_unsigned() && number.get<uint64_t>() > uint64_t{INT64_MAX}) return false;
  return number.get<int64_t>() >= field.least && number.get<int64_t>() <= field.most;
}

Error OutOfRange(const Field& field) {
  return {
      Code::kInvalid, "'" + field.name + "' is out of range",
      "give a number from " + std::to_string(field.least) + " to " + std::to_string(field.most)};
}

const Field* FindField(const std::vector<Field>& fields, const std::string& name) {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Result<int64_t> ReadNumber(const std::string& text, const Field& field) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return OutOfRange(field);
  if (number < field.least || number > field.most) return OutOfRange(field);
  return number;
}

}  // namespace

Result<Json> ReadBody(const std::string& text, const std::vector<Field>& fields) {
  MUSTER_ASSIGN(Json body,
                ParseJson(text.empty() ? "{}" : text, "body", {.depth = kMaxBodyJsonDepth}));
  if (!body.is_object()) return Error{Code::kInvalid, "the body is not a JSON object"};
  for (const auto& [name, value] : body.items()) {
    const Field* field = FindField(fields, name);
    if (field == nullptr || !HasType(value, field->type)) {
      return Error{Code::kInvalid, "unknown field '" + name + "', or wrong type",
                   "see /api/v1/openapi.yaml"};
    }
    if (field->type == Field::Type::kNumber && !IsInRange(value, *field)) return OutOfRange(*field);
  }
  return body;
}

Result<Json> ReadQuery(const WebRequest& request, const std::vector<Field>& fields) {
  Json query = Json::object();
  for (const Field& field : fields) {
    if (field.type == Field::Type::kTexts) {
      query[field.name] = Json::array();
      for (const auto& [name, value] : request.query) {
        if (name == field.name) query[field.name].push_back(value);
      }
      continue;
    }
    const auto given = request.Param(field.name);
    if (field.type != Field::Type::kNumber) {
      if (given) query[field.name] = *given;
      continue;
    }
    if (given) {
      MUSTER_ASSIGN(query[field.name], ReadNumber(*given, field));
    } else if (field.fallback) {
      query[field.name] = *field.fallback;
    }
  }
  return query;
}

}  // namespace muster::serve
