#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "muster/result.h"

namespace muster {

// A member that is a text, or a whole number that fits; what else is there, or nothing, is
// `otherwise`. For what is shown to people and may come from anywhere.
std::string TextIn(const Json& json, std::string_view name);
int64_t NumberIn(const Json& json, std::string_view name, int64_t otherwise = 0);
// Null if there is none.
const Json& MemberIn(const Json& json, std::string_view name);

// Reads the members of an object that was stored, such as the body of a record. Nothing throws: a
// member that is not there leaves its value as it is, one of another type is a mistake, and the
// first mistake is what Check returns.
//
//   JsonFields fields(Json::parse(record.body, nullptr, false));
//   fields.Read("attempt", run.attempt);
//   MUSTER_TRY(fields.Check("the record of migration '" + record.key + "'"));
class JsonFields {
 public:
  explicit JsonFields(Json json);

  // Texts, flags, numbers, lists and maps of these, and Json itself for anything. An optional is
  // none if it is null.
  template <class T>
  JsonFields& Read(std::string_view name, T& value) {
    if (const Json* found = Find(name)) Take(name, *found, value);
    return *this;
  }

  // The same, but it has to be there.
  template <class T>
  JsonFields& Need(std::string_view name, T& value) {
    if (Find(name) == nullptr) Mistake("'" + std::string(name) + "' is missing");
    return Read(name, value);
  }

  const Json* Find(std::string_view name) const;

  // Only the first one is kept.
  void Mistake(std::string words);
  bool good() const { return mistake_.empty(); }

  // kCorrupt: "WHAT is not one of ours: MISTAKE".
  Status Check(std::string_view what) const;

 private:
  template <class T>
  struct IsOptional : std::false_type {};
  template <class T>
  struct IsOptional<std::optional<T>> : std::true_type {};
  template <class T>
  struct IsVector : std::false_type {};
  template <class T>
  struct IsVector<std::vector<T>> : std::true_type {};

  template <class T>
  void Take(std::string_view name, const Json& json, T& value) {
    if constexpr (std::same_as<T, Json>) {
      value = json;
    } else if constexpr (std::same_as<T, std::string>) {
      if (Is(name, json.is_string(), "a text")) value = json.get<std::string>();
    } else if constexpr (std::same_as<T, bool>) {
      if (Is(name, json.is_boolean(), "true or false")) value = json.get<bool>();
    } else if constexpr (std::floating_point<T>) {
      if (Is(name, json.is_number(), "a number")) value = json.get<T>();
    } else if constexpr (std::integral<T>) {
      const bool fits = json.is_number_unsigned()
                            ? std::in_range<T>(json.get<uint64_t>())
                            : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
      if (Is(name, fits, "a whole number within its limits")) value = json.get<T>();
    } else if constexpr (IsOptional<T>::value) {
      if (json.is_null()) {
        value = std::nullopt;
      } else {
        Take(name, json, value.emplace());
      }
    } else if constexpr (IsVector<T>::value) {
      if (!Is(name, json.is_array(), "a list")) return;
      value.clear();
      for (const Json& element : json) Take(name, element, value.emplace_back());
    } else {
      if (!Is(name, json.is_object(), "an object")) return;
      value.clear();
      for (const auto& [key, member] : json.items()) Take(name, member, value[key]);
    }
  }

  bool Is(std::string_view name, bool good, std::string_view wanted);

  Json json_;
  std::string mistake_;
};

}  // namespace muster
