#include "core/filled_secrets.h"

#include <algorithm>

#include "core/regex.h"
#include "core/secrets.h"

namespace muster {
namespace {

// Whether a reference begins in this piece but does not end in it: data would choose the secret.
bool IsCutOff(std::string_view piece) {
  for (size_t open = piece.find("${"); open != piece.npos; open = piece.find("${", open + 2)) {
    if (piece.find('}', open) == piece.npos) return true;
  }
  return piece.ends_with('$');
}

}  // namespace

Status CheckSecretOrigin(const std::string& text, const std::vector<std::string>& pieces) {
  if (std::any_of(pieces.begin(), pieces.end(), IsCutOff)) {
    return Error{Code::kInvalid, "data completes a secret reference",
                 "put the whole reference into the definition"};
  }
  size_t written = 0;
  for (const std::string& piece : pieces) written += CountSecretReferences(piece);
  if (CountSecretReferences(text) == written) return {};
  return Error{Code::kInvalid, "a secret reference came with data",
               "put it into the definition: references in data are never resolved"};
}

Status CheckSecretFillings(const std::string& text, const std::vector<std::string>& pieces) {
  std::string expression = Regex::Escape(pieces.front());
  for (size_t i = 1; i < pieces.size(); ++i)
    expression += "[A-Za-z0-9._~-]*" + Regex::Escape(pieces[i]);
  MUSTER_ASSIGN(const Regex plain, Regex::Compile(expression));
  if (plain.MatchesWhole(text)) return {};
  return Error{Code::kInvalid, "data with special characters in a URL with a secret reference",
               "only letters, digits and . _ ~ - may be filled into such a URL"};
}

}  // namespace muster
