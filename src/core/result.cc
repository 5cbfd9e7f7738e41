#include "muster/result.h"

namespace muster {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not_found";
    case Code::kConflict:
      return "conflict";
    case Code::kLeaseLost:
      return "lease_lost";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnknownOutcome:
      return "unknown_outcome";
    case Code::kPermission:
      return "permission";
    case Code::kReadOnly:
      return "read_only";
    case Code::kFull:
      return "full";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kIncompatible:
      return "incompatible";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInternal:
      return "internal";
  }
  return "internal";
}

std::string_view PartyName(Party party) {
  switch (party) {
    case Party::kNone:
      return "";
    case Party::kSource:
      return "source";
    case Party::kSink:
      return "sink";
    case Party::kDeadLetters:
      return "file for dead letters";
  }
  return "";
}

bool IsTransient(Code code) {
  return code == Code::kUnavailable || code == Code::kUnknownOutcome || code == Code::kReadOnly ||
         code == Code::kFull;
}

std::string Error::ToString() const { return hint.empty() ? message : message + " (" + hint + ")"; }

Error Error::Within(std::string_view context) const {
  return Error{code, std::string(context) + ": " + message, hint, party};
}

Error Error::By(Party whom) const {
  Error error = *this;
  if (error.party == Party::kNone) error.party = whom;
  return error;
}

}  // namespace muster
