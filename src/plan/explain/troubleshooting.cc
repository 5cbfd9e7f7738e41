#include "plan/explain/troubleshooting.h"

#include <algorithm>
#include <vector>

namespace muster::plan {
namespace {

struct Case {
  std::vector<std::string> errors;  // prefixes of the error's name
  std::vector<std::string> words;   // texts in the cause; empty: any cause
  Remedy remedy;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> kCases{
      {{"Transform.ForeignKey", "Reconcile.ForeignKey"},
       {},
       {"the order of ranks is wrong, or the parent's rows are missing",
        "check the rank's needs, and that the rank that loads the parent has loaded all its rows"}},
      {{"States.TaskFailed", "Glue"},
       {"oreign key"},
       {"the order of ranks is wrong, or the parent's rows are missing",
        "check the rank's needs, and that the rank that loads the parent has loaded all its rows"}},
      {{"Copy.NotFound", "Appflow.ResourceNotFoundException"},
       {},
       {"the object is not configured in the source",
        "add the object there, or take it out of the plan"}},
      {{"Transform.NotFound", "Glue.EntityNotFoundException"},
       {},
       {"the script is missing, or not deployed",
        "check that the script's file and the table that it loads exist"}},
      {{""},
       {"security token included in the request is expired", "ExpiredToken", "token has expired"},
       {"the credentials have expired", "renew them, and resume the migration"}},
      {{"States.Timeout"},
       {},
       {"there is more data than the time-out was estimated for",
        "give the task more DPU or a longer timeout, or split the rank"}},
  };
  return kCases;
}

}  // namespace

std::optional<Remedy> RemedyFor(const std::string& error, const std::string& cause) {
  for (const Case& known : Cases()) {
    const bool named =
        std::any_of(known.errors.begin(), known.errors.end(),
                    [&](const std::string& name) { return error.starts_with(name); });
    const bool told = known.words.empty() || std::any_of(known.words.begin(), known.words.end(),
                                                         [&](const std::string& word) {
                                                           return cause.find(word) != cause.npos;
                                                         });
    if (named && told) return known.remedy;
  }
  return std::nullopt;
}

}  // namespace muster::plan
