#pragma once

#include <cassert>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// The version of these headers, for code that supports several. A minor version may change the API
// until 1.0.
#define MUSTER_VERSION_MAJOR 0
#define MUSTER_VERSION_MINOR 2
#define MUSTER_VERSION_PATCH 0
#define MUSTER_VERSION_STRING "0.2.0"

// Marks what the shared library exports; everything else in it is hidden.
#define MUSTER_EXPORT __attribute__((visibility("default")))

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
MUSTER_EXPORT std::string_view CodeName(Code code);

// Whether it is transient: the same call may succeed later.
MUSTER_EXPORT bool IsTransient(Code code);

// Which side failed, where that decides how to continue.
enum class Party { kNone, kSource, kSink, kDeadLetters };
MUSTER_EXPORT std::string_view PartyName(Party party);

// A failure for people: what went wrong, and what to do next if known. Never contains a secret:
// redact before building a message from one.
struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::string hint = {};
  Party party = Party::kNone;

  // "message" or "message (hint)", on one line.
  MUSTER_EXPORT std::string ToString() const;

  // The same failure with context: "context: message".
  MUSTER_EXPORT Error Within(std::string_view context) const;

  // The same failure, attributed to that party unless already attributed.
  MUSTER_EXPORT Error By(Party whom) const;
};

// Marks an error on its way into an Expected: `return Unexpected(error);`
template <class E>
class Unexpected {
 public:
  explicit Unexpected(E error) : error_(std::move(error)) {}
  const E& error() const& { return error_; }
  E&& error() && { return std::move(error_); }

 private:
  E error_;
};

template <class T, class E>
class Expected;

namespace expected_detail {
template <class T, class E>
void IsExpected(const Expected<T, E>&);
template <class U>
concept AnExpected = requires(const U& value) { IsExpected(value); };
template <class U>
inline constexpr bool kUnexpected = false;
template <class E>
inline constexpr bool kUnexpected<Unexpected<E>> = true;
}  // namespace expected_detail

// A value or an error, as std::expected of C++23. Reading the one that is not there is a bug, which
// is asserted.
template <class T, class E>
class [[nodiscard]] Expected {
 public:
  using value_type = T;
  using error_type = E;

  Expected()
    requires std::default_initializable<T>
      : value_(), has_value_(true) {}
  template <class U = T>
    requires(std::constructible_from<T, U> &&
             !expected_detail::kUnexpected<std::remove_cvref_t<U>> &&
             !expected_detail::AnExpected<std::remove_cvref_t<U>>)
  explicit(!std::convertible_to<U, T>) Expected(U&& value)
      : value_(std::forward<U>(value)), has_value_(true) {}
  template <class G>
    requires std::constructible_from<E, G>
  Expected(Unexpected<G> error) : error_(std::move(error).error()), has_value_(false) {}
  template <class U, class G>
    requires(!std::same_as<U, T> && std::convertible_to<U, T> && std::convertible_to<G, E>)
  Expected(Expected<U, G> other) : has_value_(other.has_value()) {
    if (has_value_) {
      std::construct_at(&value_, *std::move(other));
    } else {
      std::construct_at(&error_, std::move(other).error());
    }
  }

  Expected(const Expected& other)
    requires std::copy_constructible<T>
      : has_value_(other.has_value_) {
    if (has_value_) {
      std::construct_at(&value_, other.value_);
    } else {
      std::construct_at(&error_, other.error_);
    }
  }
  Expected(Expected&& other) noexcept : has_value_(other.has_value_) {
    if (has_value_) {
      std::construct_at(&value_, std::move(other.value_));
    } else {
      std::construct_at(&error_, std::move(other.error_));
    }
  }
  Expected& operator=(const Expected& other)
    requires std::copy_constructible<T>
  {
    return *this = Expected(other);
  }
  Expected& operator=(Expected&& other) noexcept {
    if (this == &other) return *this;
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~Expected() {
    if (has_value_) {
      std::destroy_at(&value_);
    } else {
      std::destroy_at(&error_);
    }
  }

  bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }

  T& operator*() & { return Value(); }
  const T& operator*() const& { return const_cast<Expected*>(this)->Value(); }
  T&& operator*() && { return std::move(Value()); }
  T* operator->() { return &Value(); }
  const T* operator->() const { return &const_cast<Expected*>(this)->Value(); }
  T& value() & { return Value(); }
  const T& value() const& { return **this; }
  T&& value() && { return std::move(Value()); }
  template <class U>
  T value_or(U&& other) const& {
    return has_value_ ? value_ : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return has_value_ ? std::move(value_) : static_cast<T>(std::forward<U>(other));
  }

  E& error() & { return TheError(); }
  const E& error() const& { return const_cast<Expected*>(this)->TheError(); }
  E&& error() && { return std::move(TheError()); }

 private:
  T& Value() {
    assert(has_value_);
    return value_;
  }
  E& TheError() {
    assert(!has_value_);
    return error_;
  }

  union {
    T value_;
    E error_;
  };
  bool has_value_;
};

template <class E>
class [[nodiscard]] Expected<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Expected() = default;
  template <class G>
    requires std::constructible_from<E, G>
  Expected(Unexpected<G> error) : error_(std::make_unique<E>(std::move(error).error())) {}
  Expected(const Expected& other)
      : error_(other.error_ ? std::make_unique<E>(*other.error_) : nullptr) {}
  Expected(Expected&&) noexcept = default;
  Expected& operator=(const Expected& other) { return *this = Expected(other); }
  Expected& operator=(Expected&&) noexcept = default;
  ~Expected() = default;

  bool has_value() const { return error_ == nullptr; }
  explicit operator bool() const { return has_value(); }
  void operator*() const { assert(has_value()); }
  void value() const { assert(has_value()); }

  E& error() & { return TheError(); }
  const E& error() const& { return TheError(); }
  E&& error() && { return std::move(TheError()); }

 private:
  E& TheError() const {
    assert(error_);
    return *error_;
  }

  std::unique_ptr<E> error_;  // a Status is passed about much, and seldom holds one
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
