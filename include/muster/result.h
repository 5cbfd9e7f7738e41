#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "muster/expected.h"

namespace muster {

// Why something failed, as far as callers need to distinguish.
enum class Code {
  kInvalid,         // the input is wrong: retrying cannot help
  kNotFound,        // what was named does not exist
  kConflict,        // a concurrent change won
  kLeaseLost,       // the caller no longer holds this and must stop
  kUnavailable,     // unreachable or not ready: nothing was applied, a retry may succeed
  kUnknownOutcome,  // the request may or may not have been applied: read again, then decide
  kPermission,      // the other side refuses the caller
  kReadOnly,        // the medium or server currently rejects writes
  kFull,            // out of disk or quota: nothing was applied
  kCorrupt,         // stored data fails its checks
  kIncompatible,    // written by a version this one does not understand
  kCancelled,       // stopped on request
  kInternal,        // a bug or an unforeseen error
};

// The name of a code for logs and JSON: "unknown_outcome".
std::string_view CodeName(Code code);

// Whether it is transient: the same call may succeed later.
bool IsTransient(Code code);

// Which side failed, where that decides how to continue.
enum class Party { kNone, kSource, kSink };
std::string_view PartyName(Party party);

// A failure for people: what went wrong, and what to do next if known. Never contains a secret:
// redact before building a message from one.
struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::string hint = {};
  Party party = Party::kNone;

  // "message" or "message (hint)", on one line.
  std::string ToString() const;

  // The same failure with context: "context: message".
  Error Within(std::string_view context) const;

  // The same failure, attributed to that party unless already attributed.
  Error By(Party whom) const;
};

// A value or an Error.
//
//   Result<int> Half(int n) {
//     if (n % 2 != 0) return Error{Code::kInvalid, "odd number"};
//     return n / 2;
//   }
template <class T>
class [[nodiscard]] Result : public Expected<T, Error> {
 public:
  using Expected<T, Error>::Expected;
  Result(Error error) : Expected<T, Error>(Unexpected(std::move(error))) {}
};

template <>
class [[nodiscard]] Result<void> : public Expected<void, Error> {
 public:
  using Expected<void, Error>::Expected;
  Result(Error error) : Expected<void, Error>(Unexpected(std::move(error))) {}
};

using Status = Result<void>;

// The result, with a failure attributed to that party.
template <class T>
Result<T> By(Party party, Result<T> result) {
  if (!result) return result.error().By(party);
  return result;
}

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// Returns a failure of `expression` to the caller.
#define MUSTER_TRY(expression)                                                             \
  do {                                                                                     \
    if (auto try_result = (expression); !try_result) return std::move(try_result).error(); \
  } while (false)

// Declares or assigns `target` from a Result, or returns its failure to the caller.
#define MUSTER_ASSIGN(target, expression) \
  MUSTER_ASSIGN_INNER(MUSTER_CONCAT(assign_result_, __LINE__), target, expression)
#define MUSTER_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                           \
  if (!result) return std::move(result).error();        \
  target = *std::move(result)
