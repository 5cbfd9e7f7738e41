#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

struct JsLimits {
  std::chrono::milliseconds time{1'000};   // of compiling, and of each call
  size_t memory_bytes = size_t{64} << 20;  // of everything that the script holds
  size_t stack_bytes = size_t{512} << 10;  // of the calling thread's
};

// What becomes of numbers on their way through a script.
enum class JsNumbers {
  // JavaScript's, 64-bit floats: integers beyond 2^53 are rounded, 1.0 becomes 1, -0 becomes 0 and
  // what is too large for a float (1e400) becomes null.
  kFloats,
  // As they are written. A number that the script only moves or copies keeps its text: 1.0, 1e3 and
  // -0 stay what they are, though the script computes with floats. Integers of 2^53 and beyond are
  // BigInt, which JavaScript does not mix with numbers: a script that computes with one either
  // says so (doc.id + 1n) or throws. A float of 2^53 or beyond that the script has computed may
  // be rounded, and is an error. So do JSON.parse and JSON.stringify.
  kExact,
};

// What a script may ask of the program, as text: `host(question)` is the answer or throws the
// error's message. Called on the thread that calls the function, within its time.
using JsHost = std::function<Result<std::string>(std::string_view question)>;

// One JavaScript function with an engine of its own: values in as JSON text, a value out as JSON
// text.
//
//   MUSTER_ASSIGN(auto f, JsFunction::Compile("(doc) => ({...doc, id: doc.key})", "id.js"));
//   MUSTER_ASSIGN(auto out, f->Call({R"({"key":1})"}));  // {"key":1,"id":1}
//
// The script has the language (ECMAScript 2023), atob and btoa, and nothing else: no files, no
// network, no modules, no timers, and `host` only if there is one. It can keep variables from one
// call to the next; whoever needs the same answer for the same document must not rely on them, nor
// on the clock or Math.random.
//
// Of a key that an object has twice the last counts. Integer-like keys ("10") move in front of the
// others.
//
// An instance belongs to one thread at a time. Instances share nothing.
class JsFunction {
 public:
  // Runs the script once; the value of its last expression must be a function. `origin` is what
  // a person knows it by, such as the file's name.
  //
  // kInvalid: "origin:line:column: SyntaxError: ...", what the script threw, or a limit.
  static Result<std::unique_ptr<JsFunction>> Compile(std::string_view source,
                                                     std::string_view origin,
                                                     const JsLimits& limits = {},
                                                     JsHost host = nullptr,
                                                     JsNumbers numbers = JsNumbers::kFloats);
  ~JsFunction();
  JsFunction(const JsFunction&) = delete;
  JsFunction& operator=(const JsFunction&) = delete;

  // Calls the function. No value: it returned undefined. A promise is waited for.
  //
  // kInvalid: the function threw ("origin:line:column: TypeError: ..."), an argument is no JSON,
  // the result cannot be said in JSON (a cycle, a function), or a limit was exceeded. After time or
  // memory ran out the next call starts with the script as it was when just compiled.
  Result<std::optional<std::string>> Call(std::initializer_list<std::string_view> arguments);

 private:
  class Engine;

  JsFunction(std::string source, std::string origin, const JsLimits& limits, JsHost host,
             JsNumbers numbers);
  Status Start();

  const std::string source_;
  const std::string origin_;
  const JsLimits limits_;
  const JsHost host_;
  const JsNumbers numbers_;
  std::unique_ptr<Engine> engine_;  // none after a limit was exceeded
};

}  // namespace muster
