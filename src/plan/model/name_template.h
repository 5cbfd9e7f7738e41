#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Stands for the folder of the plan's file, unless there is a variable of that name.
inline constexpr const char* kPlanFolder = "plan_folder";

// The names in braces: "migration-{customer}-{object}" has two. What is between other braces, a
// secret reference for one, is left alone.
std::vector<std::string> PlaceholdersOf(std::string_view text);

// What is between them: two texts around each, which may be empty.
std::vector<std::string> LiteralsOf(std::string_view text);

// Texts with {names} in them, filled in for one plan. Variables are known now; inputs are known
// when a run begins.
class Names {
 public:
  explicit Names(const Plan& plan) : plan_(plan) {}

  // Sets the field of a state's Parameters: "key": "text", or "key.$": "States.Format(…)" if it has
  // inputs in it. `own` are further names that are known now.
  void Put(Json& parameters, const std::string& key, std::string_view text,
           const std::map<std::string, std::string>& own = {}) const;

  // The text with everything filled in; inputs by their defaults. kInvalid: an input has none.
  Result<std::string> Fixed(std::string_view text) const;

  // The text in a run with these inputs, and what of it is not input: two texts around each. An
  // input that is neither given nor has a default is empty.
  struct Filled {
    std::string text;
    std::vector<std::string> pieces;
  };
  Filled Fill(std::string_view text, const std::map<std::string, std::string>& inputs) const;

  // The text with `*` where an input is: what an IAM policy can say of it.
  std::string Pattern(std::string_view text,
                      const std::map<std::string, std::string>& own = {}) const;

 private:
  const Plan& plan_;
};

}  // namespace muster::plan
