#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace muster {

// Why something failed, as far as a caller may want to decide by it.
enum class Code {
  kInvalid,         // the input is wrong: repeating it cannot help
  kNotFound,        // what was named does not exist
  kConflict,        // somebody else changed it first
  kLeaseLost,       // the caller holds this no longer and must stop
  kUnavailable,     // not reached or not ready: nothing was applied, a later try may succeed
  kUnknownOutcome,  // the request may or may not have been applied: read again, then decide
  kPermission,      // the other side knows the caller and refuses
  kReadOnly,        // the medium or server takes no writes at the moment
  kFull,            // out of disk or quota: nothing was applied
  kCorrupt,         // stored data fails its checks
  kIncompatible,    // written by a version this one does not understand
  kCancelled,       // stopped on request
  kInternal,        // a bug or an error nobody foresaw
};

// The name of a code for logs and JSON: "unknown_outcome".
std::string_view CodeName(Code code);

// Whether waiting may mend it: the same call may succeed later.
bool IsTransient(Code code);

// Whom a failure is about, where that decides what becomes of the work.
enum class Party { kNone, kSource, kSink };
std::string_view PartyName(Party party);

// A failure told to a person: what went wrong, and what to do next where that is known.
// Never holds a secret: whoever builds a message from a secret redacts it first.
struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::string hint = {};
  Party party = Party::kNone;

  // "message" or "message (hint)", on one line.
  std::string ToString() const;

  // The same failure, seen from further out: "context: message".
  Error Within(std::string_view context) const;

  // The same failure, of that party unless a caller nearer to it has named one.
  Error By(Party whom) const;
};

// A value, or the Error that stood in its way.
//
//   Result<int> Half(int n) {
//     if (n % 2 != 0) return Error{Code::kInvalid, "odd number"};
//     return n / 2;
//   }
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
 public:
  using tl::expected<void, Error>::expected;
  Result(Error error) : tl::expected<void, Error>(tl::unexpect, std::move(error)) {}
};

using Status = Result<void>;

// What was answered; a failure of it is that party's.
template <class T>
Result<T> By(Party party, Result<T> result) {
  if (!result) return result.error().By(party);
  return result;
}

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// Passes a failure of `expression` on to the caller.
#define MUSTER_TRY(expression)                                                             \
  do {                                                                                     \
    if (auto try_result = (expression); !try_result) return std::move(try_result).error(); \
  } while (false)

// Declares or assigns `target` from a Result, or passes its failure on to the caller.
#define MUSTER_ASSIGN(target, expression) \
  MUSTER_ASSIGN_INNER(MUSTER_CONCAT(assign_result_, __LINE__), target, expression)
#define MUSTER_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                           \
  if (!result) return std::move(result).error();        \
  target = *std::move(result)
