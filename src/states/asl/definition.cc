#include "states/asl/definition.h"

#include <algorithm>

#include "states/asl/definition_reader.h"

namespace muster::states {

CheckedDefinition CheckDefinition(std::string_view text, JsonataEngine* jsonata) {
  CheckedDefinition checked;
  if (text.size() > kMaxDefinitionBytes) {
    checked.problems.push_back({{}, "larger than the limit of 1 MiB"});
    return checked;
  }
  Source source = Source::Read(text);
  if (source.root) {
    DefinitionReader reader(source, jsonata);
    checked.definition = std::make_shared<const Definition>(reader.Read(*source.root));
  }
  checked.problems = std::move(source.problems);
  std::stable_sort(checked.problems.begin(), checked.problems.end(),
                   [](const Problem& a, const Problem& b) {
                     return std::tie(a.position.line, a.position.column) <
                            std::tie(b.position.line, b.position.column);
                   });
  const bool fatal = std::any_of(checked.problems.begin(), checked.problems.end(),
                                 [](const Problem& problem) { return problem.fatal; });
  if (fatal) checked.definition.reset();
  return checked;
}

Result<std::shared_ptr<const Definition>> ReadDefinition(std::string_view text,
                                                         std::string_view origin,
                                                         JsonataEngine* jsonata) {
  CheckedDefinition checked = CheckDefinition(text, jsonata);
  if (checked.definition) return std::move(checked.definition);
  std::string message;
  for (const Problem& problem : checked.problems) {
    if (!problem.fatal) continue;
    if (!message.empty()) message += '\n';
    message += AtPosition(origin, problem.position, problem.message);
  }
  return Error{Code::kInvalid, std::move(message)};
}

}  // namespace muster::states
