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

#include "core/json.h"
#include "muster/result.h"

namespace muster {

// A string or integer member; `otherwise` if it is missing or of another type. For displaying data
// of any origin.
std::string TextIn(const Json& json, std::string_view name);
int64_t NumberIn(const Json& json, std::string_view name, int64_t otherwise = 0);
// Null if missing.
const Json& MemberIn(const Json& json, std::string_view name);

// Reads the members of a stored object, such as a record's body. Nothing throws: a missing member
// leaves its value unchanged, a wrong type is an error, and Check returns the first error.
//
//   JsonFields fields(Json::parse(record.body, nullptr, false));
//   fields.Read("attempt", run.attempt);
//   MUSTER_TRY(fields.Check("the record of migration '" + record.key + "'"));
class JsonFields {
 public:
  explicit JsonFields(Json json);

  // Strings, booleans, numbers, lists and maps of these, and Json for anything. Null reads as an
  // empty optional.
  template <class T>
  JsonFields& Read(std::string_view name, T& value) {
    if (const Json* found = Find(name)) Take(name, *found, value);
    return *this;
  }

  // The same for a required member.
  template <class T>
  JsonFields& Need(std::string_view name, T& value) {
    Require(name);
    return Read(name, value);
  }
  void Require(std::string_view name);

  const Json* Find(std::string_view name) const;

  // Only the first is kept.
  void Mistake(std::string words);
  bool good() const { return mistake_.empty(); }
  const std::string& mistake() const { return mistake_; }

  // kCorrupt: "WHAT is damaged or not Muster's: MISTAKE".
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
      if (Is(name, json.is_string(), "a string")) value = json.get<std::string>();
    } else if constexpr (std::same_as<T, bool>) {
      if (Is(name, json.is_boolean(), "true or false")) value = json.get<bool>();
    } else if constexpr (std::floating_point<T>) {
      if (Is(name, json.is_number(), "a number")) value = json.get<T>();
    } else if constexpr (std::integral<T>) {
      const bool fits = json.is_number_unsigned()
                            ? std::in_range<T>(json.get<uint64_t>())
                            : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
      if (Is(name, fits, "an integer in range")) value = json.get<T>();
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
