#pragma once

#include "states/run/interpreter.h"

namespace muster::states {

// Shared by the files that implement the interpreter.

const Value& EmptyObject();

// "TaskStateEntered"
std::string EventType(const State& state, std::string_view what);

// `input` with `value` at `path`.
Fallible<Value> PutAt(const JsonPath& path, const Value& input, const Json& value);

// What the expressions of a flow's state can see. Lives for one step of the interpreter.
class Interpreter::ScopeHolder {
 public:
  ScopeHolder(const Interpreter& interpreter, const Flow& flow, const Json* input)
      : interpreter_(interpreter), flow_(flow) {
    scope_.input = input;
    scope_.variables = &flow.variables;
    scope_.env = &interpreter.env_;
    scope_.jsonata = interpreter.jsonata_;
    scope_.context = [this](bool whole) -> const Json& { return Context(whole); };
    scope_.execution_input = interpreter.info_.input.get();
  }
  ScopeHolder(const ScopeHolder&) = delete;
  ScopeHolder& operator=(const ScopeHolder&) = delete;

  Scope& operator*() { return scope_; }
  const Scope& operator*() const { return scope_; }
  Scope* operator->() { return &scope_; }

  // The token that the context shows to the call of a Task.
  void set_token(const std::string& token) { token_ = token; }

 private:
  const Json& Context(bool whole);
  Json MakeContext() const;

  const Interpreter& interpreter_;
  const Flow& flow_;
  Scope scope_;
  std::string token_;
  std::optional<Json> context_;
  bool is_whole_ = false;
};

}  // namespace muster::states
