#include "task/secret_references.h"

#include "core/filled_secrets.h"
#include "core/secrets.h"

namespace muster::task {
namespace {

Status At(const states::TaskCall& call, const std::string& pointer, Status checked) {
  if (checked) return checked;
  Error error = std::move(checked).error();
  error.message = call.resource + ": " + error.message + " at " + pointer;
  return error;
}

}  // namespace

Status CheckReferences(const states::TaskCall& call, const std::string& pointer,
                       const std::string& text) {
  const auto found = call.references.find(pointer);
  if (found == call.references.end()) return At(call, pointer, CheckSecretOrigin(text, {}));
  MUSTER_TRY(At(call, pointer, CheckSecretOrigin(text, found->second)));
  return At(call, pointer, CheckSecretFillings(text, found->second));
}

Result<std::string> ResolveReferences(const states::TaskCall& call, const std::string& pointer,
                                      const std::string& text) {
  const auto found = call.references.find(pointer);
  if (found == call.references.end()) return text;
  MUSTER_TRY(At(call, pointer, CheckSecretOrigin(text, found->second)));
  return ExpandSecrets(text);
}

}  // namespace muster::task
