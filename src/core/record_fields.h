#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/enum_names.h"
#include "core/escape_bytes.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/record_version.h"

namespace muster {

// One member of a stored struct: how it is written and how it is read.
template <class T>
struct RecordField {
  std::string_view name;
  void (*write)(const T& from, Json& json, std::string_view name);
  void (*read)(JsonFields& fields, T& to, std::string_view name);
};

// The list of a struct's members, for writing and for reading, in the order of writing.
template <class T, size_t N>
using RecordFields = std::array<RecordField<T>, N>;

template <class T, size_t N>
void WriteMembers(const RecordFields<T, N>& list, const T& from, Json& json) {
  for (const RecordField<T>& field : list) field.write(from, json, field.name);
}

template <class T, size_t N>
void ReadMembers(const RecordFields<T, N>& list, JsonFields& fields, T& to) {
  for (const RecordField<T>& field : list) field.read(fields, to, field.name);
}

// Forms: how the value of a member is written in JSON. Without a member, Read keeps the value.

struct AsIs {
  template <class V>
  static Json Write(const V& value) {
    if constexpr (requires { value.has_value(); }) {
      return value ? Json(*value) : Json();
    } else {
      return Json(value);
    }
  }
  template <class V>
  static void Read(JsonFields& fields, std::string_view name, V& value) {
    fields.Read(name, value);
  }
};

// Text that may have any bytes, or a list of such texts.
struct Escaped {
  static Json Write(const std::string& value) { return EscapeBytes(value); }
  static Json Write(const std::vector<std::string>& values) {
    Json list = Json::array();
    for (const std::string& value : values) list.push_back(EscapeBytes(value));
    return list;
  }

  template <class V>
  static void Read(JsonFields& fields, std::string_view name, V& value) {
    V escaped;
    if (fields.Find(name) == nullptr) return;
    fields.Read(name, escaped);
    if (Unescape(escaped)) {
      value = std::move(escaped);
    } else {
      fields.Mistake("'" + std::string(name) + "' is damaged");
    }
  }

 private:
  static bool Unescape(std::string& text) {
    auto bytes = UnescapeBytes(text);
    if (!bytes) return false;
    text = *std::move(bytes);
    return true;
  }
  static bool Unescape(std::vector<std::string>& texts) {
    for (std::string& text : texts) {
      if (!Unescape(text)) return false;
    }
    return true;
  }
};

// An enum, by the names of its values.
template <const auto& kNames>
struct ByName {
  template <class V>
  static Json Write(const V& value) {
    if constexpr (requires { value.has_value(); }) {
      return value ? Write(*value) : Json();
    } else {
      return Json(std::string(kNames.NameOf(value)));
    }
  }
  template <class V>
  static void Read(JsonFields& fields, std::string_view name, V& value) {
    if (fields.Find(name) == nullptr) return;
    std::string text;
    fields.Read(name, text);
    const auto known = kNames.Find(text);
    if (known) value = *known;
    if (!known) fields.Mistake("'" + std::string(name) + "' cannot be '" + text + "'");
  }
};

// A struct with a list of its own.
template <const auto& kList>
struct Nested {
  template <class V>
  static Json Write(const V& value) {
    if constexpr (requires { value.has_value(); }) {
      return value ? Write(*value) : Json();
    } else {
      Json json = Json::object();
      WriteMembers(kList, value, json);
      return json;
    }
  }
  template <class V>
  static void Read(JsonFields& fields, std::string_view name, V& value) {
    const Json* found = fields.Find(name);
    if (found == nullptr) return;
    if constexpr (requires { value.emplace(); }) {
      if (!found->is_null()) Read(fields, name, value.emplace());
    } else {
      JsonFields members(*found);
      ReadMembers(kList, members, value);
      if (!members.good()) fields.Mistake("in '" + std::string(name) + "' " + members.mistake());
    }
  }
};

// When a member is there. Read if present, and:
enum class Presence {
  kIfSet,     // written unless it has its default value
  kAlways,    // written whatever its value; older versions may not have
  kRequired,  // written whatever its value; it is a mistake if it is missing
};

template <class V>
bool IsSet(const V& value) {
  if constexpr (requires { value.has_value(); }) {
    return value.has_value();
  } else {
    return !(value == V{});
  }
}

// `kGet`: a pointer to the member, or a function from the struct to a reference to it.
template <class T, auto kGet, Presence kPresence, class Form>
constexpr RecordField<T> Member(std::string_view name) {
  return {name,
          [](const T& from, Json& json, std::string_view key) {
            const auto& value = std::invoke(kGet, from);
            if constexpr (kPresence == Presence::kIfSet) {
              if (!IsSet(value)) return;
            }
            json[key] = Form::Write(value);
          },
          [](JsonFields& fields, T& to, std::string_view key) {
            if (kPresence == Presence::kRequired) fields.Require(key);
            Form::Read(fields, key, std::invoke(kGet, to));
          }};
}

template <class T, auto kGet, class Form = AsIs>
constexpr RecordField<T> Field(std::string_view name) {
  return Member<T, kGet, Presence::kIfSet, Form>(name);
}

template <class T, auto kGet, class Form = AsIs>
constexpr RecordField<T> Always(std::string_view name) {
  return Member<T, kGet, Presence::kAlways, Form>(name);
}

template <class T, auto kGet, class Form = AsIs>
constexpr RecordField<T> Required(std::string_view name) {
  return Member<T, kGet, Presence::kRequired, Form>(name);
}

// A required enum.
template <class T, auto kGet, const auto& kNames>
constexpr RecordField<T> Named(std::string_view name) {
  return Required<T, kGet, ByName<kNames>>(name);
}

// A stored struct: its format, and the one list of its members.
//
//   constexpr RecordTable<EndBody, 1> kEnd{{"run_end", 1}, {{
//       Field<EndBody, &EndBody::confirmed>("confirmed"),
//   }}};
template <class T, size_t N>
struct RecordTable {
  RecordFormat format;
  RecordFields<T, N> fields;

  // The members alone.
  Json Members(const T& from) const {
    Json json = Json::object();
    WriteMembers(fields, from, json);
    return json;
  }

  // With the version.
  Json ToJson(const T& from) const {
    Json json{{kVersionField, format.version}};
    WriteMembers(fields, from, json);
    return json;
  }

  // As text, with the version as the last member. For records whose texts are compared.
  std::string ToText(const T& from) const {
    Json json = Members(from);
    json[kVersionField] = format.version;
    return ToJsonText(json);
  }

  // kInvalid: a newer version of muster wrote it. kCorrupt: it is none of ours. `what` names it.
  Result<T> Read(const Json& json, std::string_view what) const {
    MUSTER_TRY(CheckVersion(VersionOf(json), format, what));
    T value{};
    JsonFields members(json);
    ReadMembers(fields, members, value);
    MUSTER_TRY(members.Check(what));
    return value;
  }

  Result<T> Parse(std::string_view text, std::string_view what) const {
    return Read(Json::parse(text, nullptr, false), what);
  }
};

}  // namespace muster
