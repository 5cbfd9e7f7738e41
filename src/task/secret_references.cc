#include "task/secret_references.h"

#include <algorithm>

#include "core/regex.h"
#include "core/secrets.h"

namespace muster::task {
namespace {

Error Refuse(const states::TaskCall& call, const std::string& what, const std::string& pointer,
             std::string hint) {
  return Error{Code::kInvalid, call.resource + ": " + what + " at " + pointer, std::move(hint)};
}

// Whether a reference begins in this piece but does not end in it: data would choose the secret.
bool IsCutOff(std::string_view piece) {
  for (size_t open = piece.find("${"); open != piece.npos; open = piece.find("${", open + 2)) {
    if (piece.find('}', open) == piece.npos) return true;
  }
  return piece.ends_with('$');
}

// Checks that all references in the text are complete and come from the definition.
Status CheckOrigin(const states::TaskCall& call, const std::string& pointer,
                   const std::string& text, const std::vector<std::string>& pieces) {
  if (std::any_of(pieces.begin(), pieces.end(), IsCutOff)) {
    return Refuse(call, "data completes a secret reference", pointer,
                  "put the whole reference into the definition");
  }
  size_t written = 0;
  for (const std::string& piece : pieces) written += CountSecretReferences(piece);
  if (CountSecretReferences(text) == written) return {};
  return Refuse(call, "a secret reference came with data", pointer,
                "put it into the definition: references in data are never resolved");
}

// Data filled into a URL must not end the URL part it is in: `db?host=elsewhere` would choose who
// gets the secret.
Status CheckFillings(const states::TaskCall& call, const std::string& pointer,
                     const std::string& text, const std::vector<std::string>& pieces) {
  std::string expression = Regex::Escape(pieces.front());
  for (size_t i = 1; i < pieces.size(); ++i)
    expression += "[A-Za-z0-9._~-]*" + Regex::Escape(pieces[i]);
  MUSTER_ASSIGN(const Regex plain, Regex::Compile(expression));
  if (plain.MatchesWhole(text)) return {};
  return Refuse(call, "data with special characters in a URL with a secret reference", pointer,
                "only letters, digits and . _ ~ - may be filled into such a URL");
}

}  // namespace

Status CheckReferences(const states::TaskCall& call, const std::string& pointer,
                       const std::string& text) {
  const auto found = call.references.find(pointer);
  if (found == call.references.end()) return CheckOrigin(call, pointer, text, {});
  MUSTER_TRY(CheckOrigin(call, pointer, text, found->second));
  return CheckFillings(call, pointer, text, found->second);
}

Result<std::string> ResolveReferences(const states::TaskCall& call, const std::string& pointer,
                                      const std::string& text) {
  const auto found = call.references.find(pointer);
  if (found == call.references.end()) return text;
  MUSTER_TRY(CheckOrigin(call, pointer, text, found->second));
  return ExpandSecrets(text);
}

}  // namespace muster::task
