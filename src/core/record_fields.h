#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/enum_names.h"
#include "core/json_fields.h"
#include "core/record_version.h"

namespace muster {

// One member of a stored struct: written unless it has its default value, read if present.
template <class T>
struct RecordField {
  std::string_view name;
  void (*write)(const T& from, Json& json, std::string_view name);
  void (*read)(JsonFields& fields, T& to, std::string_view name);
};

template <class V>
void PutMember(Json& json, std::string_view name, const V& value) {
  if (value == V{}) return;
  if constexpr (requires { value.has_value(); }) {
    json[name] = Json(*value);
  } else {
    json[name] = Json(value);
  }
}

// `kGet`: a pointer to the member, or a function from the struct to a reference to it.
template <class T, auto kGet>
constexpr RecordField<T> Field(std::string_view name) {
  return {name,
          [](const T& from, Json& json, std::string_view key) {
            PutMember(json, key, std::invoke(kGet, from));
          },
          [](JsonFields& fields, T& to, std::string_view key) {
            fields.Read(key, std::invoke(kGet, to));
          }};
}

// The same for a member that must be there, whatever its value.
template <class T, auto kGet>
constexpr RecordField<T> Required(std::string_view name) {
  return {name,
          [](const T& from, Json& json, std::string_view key) {
            json[key] = Json(std::invoke(kGet, from));
          },
          [](JsonFields& fields, T& to, std::string_view key) {
            fields.Need(key, std::invoke(kGet, to));
          }};
}

// A required enum, by the names of its values.
template <class T, auto kGet, const auto& kNames>
constexpr RecordField<T> Named(std::string_view name) {
  return {name,
          [](const T& from, Json& json, std::string_view key) {
            json[key] = std::string(kNames.NameOf(std::invoke(kGet, from)));
          },
          [](JsonFields& fields, T& to, std::string_view key) {
            std::string text;
            fields.Need(key, text);
            const auto known = kNames.Find(text);
            if (known) std::invoke(kGet, to) = *known;
            if (!known) fields.Mistake("'" + std::string(key) + "' cannot be '" + text + "'");
          }};
}

// A stored struct: its format, and the one list of its members, for writing and for reading.
//
//   constexpr RecordTable<EndBody, 1> kEnd{{"run_end", 1}, {{
//       Field<EndBody, &EndBody::confirmed>("confirmed"),
//   }}};
template <class T, size_t N>
struct RecordTable {
  RecordFormat format;
  std::array<RecordField<T>, N> fields;

  // The members alone.
  Json Members(const T& from) const {
    Json json = Json::object();
    for (const RecordField<T>& field : fields) field.write(from, json, field.name);
    return json;
  }

  // With the version.
  Json ToJson(const T& from) const {
    Json json{{kVersionField, format.version}};
    for (const RecordField<T>& field : fields) field.write(from, json, field.name);
    return json;
  }

  // kInvalid: a newer version of muster wrote it. kCorrupt: it is none of ours. `what` names it.
  Result<T> Read(const Json& json, std::string_view what) const {
    MUSTER_TRY(CheckVersion(VersionOf(json), format, what));
    T value{};
    JsonFields members(json);
    for (const RecordField<T>& field : fields) field.read(members, value, field.name);
    MUSTER_TRY(members.Check(what));
    return value;
  }

  Result<T> Parse(std::string_view text, std::string_view what) const {
    return Read(Json::parse(text, nullptr, false), what);
  }
};

}  // namespace muster
