#include "task/secret_references.h"

#include "base/secrets.h"

namespace muster::task {

Status CheckReferences(const TaskCall& call, const std::string& pointer, const std::string& text) {
  const auto found = call.references.find(pointer);
  const size_t written = found == call.references.end() ? 0 : found->second;
  if (CountSecretReferences(text) == written) return {};
  return Error{Code::kInvalid, call.resource + ": data has a reference to a secret at " + pointer,
               "write it into the definition: references are resolved only there"};
}

Result<std::string> ResolveReferences(const TaskCall& call, const std::string& pointer,
                                      const std::string& text) {
  if (!call.references.contains(pointer)) return text;
  MUSTER_TRY(CheckReferences(call, pointer, text));
  return ExpandSecrets(text);
}

}  // namespace muster::task
