#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::script {

struct JsLimits {
  std::chrono::milliseconds time{1'000};   // for compiling, and for each call
  size_t memory_bytes = size_t{64} << 20;  // total memory of the script
  size_t stack_bytes = size_t{512} << 10;  // of the calling thread's stack
};

// How numbers pass through a script.
enum class JsNumbers {
  // JavaScript's 64-bit floats: integers beyond 2^53 are rounded, 1.0 becomes 1, -0 becomes 0 and
  // overflow (1e400) becomes null.
  kFloats,
  // The same, but an integer beyond 2^53 that the script only moves or copies keeps its digits.
  // What
  // is computed with it is rounded.
  kMovedIntegers,
  // Exactly. A number that the script only moves or copies keeps its text: 1.0, 1e3 and -0 are
  // unchanged, though the script computes with floats. Integers of 2^53 and beyond are BigInt, also
  // as 1e20, which JavaScript does not mix with numbers: a script that computes with one either
  // says
  // so (doc.id + 1n) or throws, and so does Number(doc.id). Other numbers beyond 2^53 can only be
  // moved. A computed float of 2^53 or beyond may be rounded: printing it, or making a text of it,
  // is
  // an error. JSON.parse and JSON.stringify do the same.
  kExact,
};

// Which function of a script is meant if its value is an object of functions.
struct JsMember {
  std::string name;
  // All names that the object may have. A script whose value is a function has it by the first.
  std::vector<std::string> known;
};

// What a script may ask of the program, as text: `host(question)` returns the answer or throws the
// error's message. Called on the function's thread, within its time limit.
using JsHost = std::function<Result<std::string>(std::string_view question)>;

// One JavaScript function with its own engine: values in and out as JSON text.
//
//   MUSTER_ASSIGN(auto f, JsFunction::Compile("(doc) => ({...doc, id: doc.key})", "id.js"));
//   MUSTER_ASSIGN(auto out, f->Call({R"({"key":1})"}));  // {"key":1,"id":1}
//
// The script has the language (ECMAScript 2023), atob and btoa, and nothing else: no files, no
// network, no modules, no timers, and `host` only if given. It can keep variables between calls;
// for deterministic results, don't rely on them, nor on the clock or Math.random.
//
// For a duplicate key the last one counts. Integer-like keys ("10") move to the front.
//
// An instance belongs to one thread at a time. Instances share nothing.
class JsFunction {
 public:
  // Runs the script once; its last expression must evaluate to a function. `origin` names it for
  // messages, usually the file.
  //
  // kInvalid: "origin:line:column: SyntaxError: ...", what the script threw, or a limit.
  static Result<std::unique_ptr<JsFunction>> Compile(std::string_view source,
                                                     std::string_view origin,
                                                     const JsLimits& limits = {},
                                                     JsHost host = nullptr,
                                                     JsNumbers numbers = JsNumbers::kFloats);
  // The same for one function of a script, with exact numbers. Null: the script does not have it.
  // kInvalid also: its value is no function and no object, or has a member that is not a function
  // or not known.
  static Result<std::unique_ptr<JsFunction>> CompileMember(std::string_view source,
                                                           std::string_view origin, JsMember member,
                                                           const JsLimits& limits = {});
  ~JsFunction();
  JsFunction(const JsFunction&) = delete;
  JsFunction& operator=(const JsFunction&) = delete;

  // Calls the function. No value: it returned undefined. Promises are awaited.
  //
  // kInvalid: the function threw ("origin:line:column: TypeError: ..."), an argument is not JSON,
  // the result cannot be expressed in JSON (a cycle, a function), or a limit was exceeded. After
  // exceeding time or memory, the next call starts with a freshly compiled script.
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
  std::optional<JsMember> member_;
  std::unique_ptr<Engine> engine_;  // null after a limit was exceeded
};

}  // namespace muster::script
