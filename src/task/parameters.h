#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "muster/task.h"

namespace muster::task {

// The parameters of a call, checked: errors name the resource and the parameter.
class Parameters {
 public:
  // kInvalid: not an object, or one with a parameter that is not among `known`.
  static Result<Parameters> Read(const states::TaskCall& call,
                                 std::initializer_list<std::string_view> known);

  // A text that is not empty.
  Result<std::string> Required(const std::string& name) const;
  // The URL or path of a place, not empty. It may have references to secrets that the definition
  // has written; kInvalid: data has brought one along.
  Result<std::string> Place(const std::string& name) const;
  // The same of a place that may be on this machine: where its path is relative, it lies in the
  // folder that the parameter "folder" names, whatever folder this process works in.
  Result<std::string> PlaceInFolder(const std::string& name) const;
  // A text; `fallback`: it is not given.
  Result<std::string> Optional(const std::string& name, const std::string& fallback = "") const;
  // An object of texts; numbers and booleans become the text that they are written as.
  Result<std::vector<std::pair<std::string, std::string>>> Texts(const std::string& name) const;
  // Whatever it is; null: it is not given.
  Json Value(const std::string& name) const;

  Error Wrong(const std::string& what) const;

 private:
  explicit Parameters(const states::TaskCall& call) : call_(&call) {}
  const states::TaskCall* call_;
};

// Puts a relative path, or that of a URL such as sqlite:FILE, into a folder. What is absolute, is
// not on this machine or begins with a reference to a secret is left as it is; so is everything if
// there is no folder.
std::string InFolder(const std::string& folder, const std::string& place);

// What a failure is called in a state machine: FailureName("Sql", kUnknownOutcome) is
// "Sql.UnknownOutcome".
std::string FailureName(std::string_view family, Code code);

}  // namespace muster::task
