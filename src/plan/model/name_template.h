#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "plan/model/plan.h"

namespace muster::plan {

// The folder of the plan's file, unless there is a variable of that name.
inline constexpr const char* kPlanFolder = "plan_folder";

// The names in braces: "migration-{customer}-{object}" has two. Other braces, such as those of a
// secret reference, are ignored.
std::vector<std::string> PlaceholdersOf(std::string_view text);

// The texts around the placeholders: one more than there are placeholders, each possibly empty.
std::vector<std::string> LiteralsOf(std::string_view text);

// Templates with {names}, filled in for one plan. Variables are known now, inputs only when a run
// begins.
class Names {
 public:
  explicit Names(const Plan& plan) : plan_(plan) {}

  // Sets a field of a state's Parameters: "key": "text", or "key.$": "States.Format(…)" if the text
  // contains inputs. `own` has further names with known values.
  void Put(Json& parameters, const std::string& key, std::string_view text,
           const std::map<std::string, std::string>& own = {}) const;

  // The text with everything filled in, inputs by their defaults. kInvalid: an input has none.
  Result<std::string> Fixed(std::string_view text) const;

  // The text in a run with these inputs, and the literal pieces around them. An input without a
  // value or default is empty.
  struct Filled {
    std::string text;
    std::vector<std::string> pieces;
  };
  Filled Fill(std::string_view text, const std::map<std::string, std::string>& inputs) const;

  // The text with `*` for each input, for IAM policies.
  std::string Pattern(std::string_view text,
                      const std::map<std::string, std::string>& own = {}) const;

 private:
  const Plan& plan_;
};

}  // namespace muster::plan
