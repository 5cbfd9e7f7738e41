#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "muster/states.h"

namespace muster::task {

// The checked parameters of a call. Errors name the resource and the parameter.
class Parameters {
 public:
  // kInvalid: not an object, or it has an unknown parameter.
  static Result<Parameters> Read(const states::TaskCall& call,
                                 std::initializer_list<std::string_view> known);

  // A non-empty string.
  Result<std::string> Required(const std::string& name) const;
  // A URL or path, not empty. It may hold secret references of the definition; kInvalid: one came
  // with data.
  Result<std::string> Place(const std::string& name) const;
  // The same; a relative local path is resolved against the parameter "folder", if given, instead
  // of the working directory.
  Result<std::string> PlaceInFolder(const std::string& name) const;
  // A string; `fallback` if it is not given.
  Result<std::string> Optional(const std::string& name, const std::string& fallback = "") const;
  // An object of strings; numbers and booleans are converted to their JSON text.
  Result<std::vector<std::pair<std::string, std::string>>> Texts(const std::string& name) const;
  // Any JSON; null if it is not given.
  Json Value(const std::string& name) const;

  Error Wrong(const std::string& what) const;

 private:
  explicit Parameters(const states::TaskCall& call) : call_(&call) {}
  const states::TaskCall* call_;
};

// Resolves a relative path, or that of a URL such as sqlite:FILE, against a folder. Absolute paths,
// remote URLs and those that begin with a secret reference are returned unchanged; so is everything
// if `folder` is empty.
std::string InFolder(const std::string& folder, const std::string& place);

// The name of a failure in a state machine: FailureName("Sql", kUnknownOutcome) is
// "Sql.UnknownOutcome".
std::string FailureName(std::string_view family, Code code);

}  // namespace muster::task
