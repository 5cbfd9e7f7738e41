#include "script/js.h"

#include <quickjs.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <utility>

#include "core/utf8.h"
#include "script/js_memory.h"
#include "script/js_numbers.h"

namespace muster::script {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxArguments = 4;
constexpr size_t kMaxMessageBytes = 1000;

// Owns one reference to a value.
class Value {
 public:
  Value(JSContext* context, JSValue value) : context_(context), value_(value) {}
  Value(Value&& other) noexcept
      : context_(other.context_), value_(std::exchange(other.value_, JS_UNDEFINED)) {}
  Value& operator=(Value&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() { JS_FreeValue(context_, value_); }

  JSValueConst get() const { return value_; }
  bool IsException() const { return JS_IsException(value_); }

 private:
  JSContext* context_;
  JSValue value_;
};

// A value's text; none if it has none. Exceptions are discarded.
std::optional<std::string> TextOf(JSContext* context, JSValueConst value) {
  size_t size = 0;
  const char* bytes = JS_ToCStringLen(context, &size, value);
  if (bytes == nullptr) {
    JS_FreeValue(context, JS_GetException(context));
    return std::nullopt;
  }
  std::string text(bytes, size);
  JS_FreeCString(context, bytes);
  return text;
}

// "line:column" of the innermost stack frame in `origin`; empty if none.
std::string_view PlaceIn(std::string_view stack, const std::string& origin) {
  const std::string lead = origin + ":";
  const size_t found = stack.find(lead);
  if (found == std::string_view::npos) return {};
  stack.remove_prefix(found + lead.size());
  size_t end = 0;
  while (end < stack.size() &&
         (std::isdigit(static_cast<unsigned char>(stack[end])) != 0 || stack[end] == ':')) {
    ++end;
  }
  return stack.substr(0, end);
}

}  // namespace

// A runtime with one script. Unusable once a limit was exceeded: jobs may be pending, memory may be
// full.
class JsFunction::Engine {
 public:
  Engine(const std::string& origin, const JsLimits& limits, const JsHost& host, JsNumbers numbers)
      : origin_(origin),
        limits_(limits),
        shared_{host, JsNumberCodec(numbers, limits.memory_bytes)},
        memory_(limits.memory_bytes) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  ~Engine() {
    if (context_ != nullptr) {
      JS_FreeValue(context_, function_);
      JS_FreeValue(context_, self_);
      shared_.numbers.End(context_);
      JS_FreeContext(context_);
    }
    if (runtime_ != nullptr) JS_FreeRuntime(runtime_);
  }

  Status Start(const std::string& source, const std::optional<JsMember>& member) {
    runtime_ = JS_NewRuntime2(&JsMemory::Functions(), &memory_);
    if (runtime_ == nullptr) return OutOfMemory();
    JS_SetMaxStackSize(runtime_, limits_.stack_bytes);
    JS_SetInterruptHandler(runtime_, &IsTimeUp, this);
    if (!MakeContext()) return OutOfMemory();
    JS_SetContextOpaque(context_, &shared_);
    if (!shared_.numbers.Start(context_)) return OutOfMemory();
    if (shared_.host && !AddHost()) return OutOfMemory();
    BeginCall();
    Value value(context_, JS_Eval(context_, source.c_str(), source.size(), origin_.c_str(),
                                  JS_EVAL_TYPE_GLOBAL));
    if (value.IsException()) return Thrown();
    MUSTER_TRY(RunJobs());
    if (member && JS_IsObject(value.get()) && !JS_IsFunction(context_, value.get())) {
      return TakeMember(value, *member);
    }
    if (!JS_IsFunction(context_, value.get())) {
      return Error{Code::kInvalid, origin_ + ": the value of the script is not a function",
                   "end it with a function: (doc) => ..., or the name of one"};
    }
    if (member && member->name != member->known.front()) return {};
    function_ = JS_DupValue(context_, value.get());
    return {};
  }

  bool HasFunction() const { return !JS_IsUndefined(function_); }

  Result<std::optional<std::string>> Call(std::initializer_list<std::string_view> arguments) {
    assert(arguments.size() <= kMaxArguments);
    BeginCall();
    std::array<JSValue, kMaxArguments> values;
    int count = 0;
    Status parsed;
    for (const std::string_view argument : arguments) {
      text_.assign(argument);  // the parser requires a terminating zero
      values[count] = JS_ParseJSON(context_, text_.c_str(), text_.size(), "argument");
      if (JS_IsException(values[count])) {
        parsed = Thrown().Within("argument " + std::to_string(count + 1) + " is not JSON");
        break;
      }
      ++count;
    }
    Value result(context_, JS_UNDEFINED);
    if (parsed) {
      result = Value(context_, JS_Call(context_, function_, self_, count, values.data()));
    }
    for (int i = 0; i < count; ++i) JS_FreeValue(context_, values[i]);
    MUSTER_TRY(std::move(parsed));
    if (result.IsException()) return Thrown();
    MUSTER_TRY(RunJobs());
    if (JS_IsPromise(result.get())) {
      MUSTER_ASSIGN(result, Settled(result));
    }
    auto json = ToJson(result);
    // Some built-in functions return early instead of throwing.
    if (time_is_up_) return TimeIsUp();
    return json;
  }

  // Whether a limit was exceeded.
  bool IsSpent() const { return time_is_up_ || memory_.was_refused(); }

 private:
  // Reading members may run the script's code.
  Status TakeMember(const Value& object, const JsMember& member) {
    MUSTER_ASSIGN(const std::vector<std::string> names, NamesOf(object));
    for (const std::string& name : names) {
      const Value value(context_, JS_GetPropertyStr(context_, object.get(), name.c_str()));
      if (value.IsException()) return Thrown();
      if (time_is_up_) return TimeIsUp();
      const bool is_known =
          std::find(member.known.begin(), member.known.end(), name) != member.known.end();
      if (!is_known || !JS_IsFunction(context_, value.get())) return NotAMember(name, member);
      if (name == member.name && !HasFunction()) function_ = JS_DupValue(context_, value.get());
    }
    self_ = JS_DupValue(context_, object.get());
    return {};
  }

  Error NotAMember(const std::string& name, const JsMember& member) const {
    std::string known;
    for (const std::string& one : member.known) known += (known.empty() ? "" : ", ") + one;
    return Error{Code::kInvalid,
                 origin_ + ": the script's value has '" + name.substr(0, kMaxMessageBytes) +
                     "', which is not one of its functions",
                 "its functions are: " + known};
  }

  // The enumerable ones.
  Result<std::vector<std::string>> NamesOf(const Value& object) {
    JSPropertyEnum* table = nullptr;
    uint32_t count = 0;
    if (JS_GetOwnPropertyNames(context_, &table, &count, object.get(),
                               JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY) < 0) {
      return Thrown();
    }
    std::vector<std::string> names;
    for (uint32_t i = 0; i < count; ++i) {
      const char* name = JS_AtomToCString(context_, table[i].atom);
      if (name == nullptr) break;
      names.emplace_back(name);
      JS_FreeCString(context_, name);
    }
    JS_FreePropertyEnum(context_, table, count);
    if (names.size() < count) return Thrown();
    return names;
  }

  static int IsTimeUp(JSRuntime* /*runtime*/, void* self) {
    auto* engine = static_cast<Engine*>(self);
    engine->time_is_up_ = Clock::now() >= engine->deadline_;
    return engine->time_is_up_ ? 1 : 0;
  }

  // The language, atob and btoa, and nothing else: WeakRef would expose garbage collection,
  // performance timing.
  bool MakeContext() {
    context_ = JS_NewContextRaw(runtime_);
    return context_ != nullptr && JS_AddIntrinsicBaseObjects(context_) == 0 &&
           JS_AddIntrinsicDate(context_) == 0 && JS_AddIntrinsicEval(context_) == 0 &&
           JS_AddIntrinsicRegExp(context_) == 0 && JS_AddIntrinsicJSON(context_) == 0 &&
           JS_AddIntrinsicProxy(context_) == 0 && JS_AddIntrinsicMapSet(context_) == 0 &&
           JS_AddIntrinsicTypedArrays(context_) == 0 && JS_AddIntrinsicPromise(context_) == 0 &&
           JS_AddIntrinsicBigInt(context_) == 0 && JS_AddIntrinsicAToB(context_) == 0;
  }

  bool AddHost() {
    const Value global(context_, JS_GetGlobalObject(context_));
    return JS_SetPropertyStr(context_, global.get(), "host",
                             JS_NewCFunction(context_, &CallHost, "host", 1)) >= 0;
  }

  static JSValue CallHost(JSContext* context, JSValueConst /*self*/, int /*count*/,
                          JSValueConst* arguments) {
    const auto question = TextOf(context, arguments[0]);
    if (!question) return JS_ThrowTypeError(context, "host: the argument is not a string");
    const auto answer = JsShared::Of(context).host(*question);
    if (!answer) return JS_ThrowPlainError(context, "%s", answer.error().ToString().c_str());
    return JS_NewStringLen(context, answer->data(), answer->size());
  }

  // The stack limit is relative to the caller, on whichever thread.
  void BeginCall() {
    JS_UpdateStackTop(runtime_);
    deadline_ = Clock::now() + limits_.time;
    shared_.numbers.Clear();
  }

  // Runs pending jobs of asynchronous functions. Nothing is left for the next call.
  Status RunJobs() {
    JSContext* context = nullptr;
    while (true) {
      const int done = JS_ExecutePendingJob(runtime_, &context);
      if (done < 0) return Thrown();
      if (done == 0) return {};
      if (IsTimeUp(runtime_, this) != 0) return TimeIsUp();
    }
  }

  Result<Value> Settled(const Value& promise) {
    switch (JS_PromiseState(context_, promise.get())) {
      case JS_PROMISE_FULFILLED:
        return Value(context_, JS_PromiseResult(context_, promise.get()));
      case JS_PROMISE_REJECTED:
        return Describe(Value(context_, JS_PromiseResult(context_, promise.get())));
      default:
        return Error{Code::kInvalid, origin_ + ": returned a promise that nothing can fulfil"};
    }
  }

  Result<std::optional<std::string>> ToJson(const Value& value) {
    if (JS_IsUndefined(value.get())) return std::optional<std::string>();
    const Value json(context_, JS_JSONStringify(context_, value.get(), JS_UNDEFINED, JS_UNDEFINED));
    if (json.IsException()) return Thrown().Within("the result is not JSON");
    if (JS_IsUndefined(json.get())) {
      return Error{Code::kInvalid, origin_ + ": the result is a function or symbol, not JSON"};
    }
    auto text = TextOf(context_, json.get());
    if (!text) return OutOfMemory();
    return text;
  }

  Error Thrown() { return Describe(Value(context_, JS_GetException(context_))); }

  // Reading an error may run the script's code, so its time still counts.
  Error Describe(const Value& thrown) {
    if (IsSpent()) return time_is_up_ ? TimeIsUp() : OutOfMemory();
    std::string message =
        TextOf(context_, thrown.get()).value_or("an exception without text was thrown");
    std::string where = origin_;
    if (JS_IsError(thrown.get())) {
      const Value stack(context_, JS_GetPropertyStr(context_, thrown.get(), "stack"));
      const std::string trace = TextOf(context_, stack.get()).value_or("");
      if (const auto place = PlaceIn(trace, origin_); !place.empty()) {
        where.append(":").append(place);
      }
    }
    if (IsSpent()) return time_is_up_ ? TimeIsUp() : OutOfMemory();
    if (message.size() > kMaxMessageBytes) {
      message.resize(ValidUtf8Prefix(std::string_view(message).substr(0, kMaxMessageBytes)));
    }
    return Error{Code::kInvalid, where + ": " + message};
  }

  Error TimeIsUp() const {
    return Error{Code::kInvalid,
                 origin_ + ": stopped after " + std::to_string(limits_.time.count()) + " ms",
                 "look for an infinite loop, or allow it more time"};
  }

  Error OutOfMemory() const {
    return Error{Code::kInvalid, origin_ + ": needs more than the " +
                                     std::to_string(limits_.memory_bytes >> 10) +
                                     " KiB of memory it may have"};
  }

  const std::string& origin_;
  const JsLimits& limits_;
  JsShared shared_;
  JsMemory memory_;
  JSRuntime* runtime_ = nullptr;
  JSContext* context_ = nullptr;
  JSValue function_ = JS_UNDEFINED;
  JSValue self_ = JS_UNDEFINED;  // the object it is a member of
  std::string text_;
  Clock::time_point deadline_{};
  bool time_is_up_ = false;
};

JsFunction::JsFunction(std::string source, std::string origin, const JsLimits& limits, JsHost host,
                       JsNumbers numbers)
    : source_(std::move(source)),
      origin_(std::move(origin)),
      limits_(limits),
      host_(std::move(host)),
      numbers_(numbers) {}

JsFunction::~JsFunction() = default;

Result<std::unique_ptr<JsFunction>> JsFunction::Compile(std::string_view source,
                                                        std::string_view origin,
                                                        const JsLimits& limits, JsHost host,
                                                        JsNumbers numbers) {
  std::unique_ptr<JsFunction> function(
      new JsFunction(std::string(source), std::string(origin), limits, std::move(host), numbers));
  MUSTER_TRY(function->Start());
  return function;
}

Result<std::unique_ptr<JsFunction>> JsFunction::CompileMember(std::string_view source,
                                                              std::string_view origin,
                                                              JsMember member,
                                                              const JsLimits& limits) {
  std::unique_ptr<JsFunction> function(
      new JsFunction(std::string(source), std::string(origin), limits, nullptr, JsNumbers::kExact));
  function->member_ = std::move(member);
  MUSTER_TRY(function->Start());
  if (!function->engine_->HasFunction()) function.reset();
  return function;
}

Status JsFunction::Start() {
  auto engine = std::make_unique<Engine>(origin_, limits_, host_, numbers_);
  MUSTER_TRY(engine->Start(source_, member_));
  engine_ = std::move(engine);
  return {};
}

Result<std::optional<std::string>> JsFunction::Call(
    std::initializer_list<std::string_view> arguments) {
  if (engine_ == nullptr) MUSTER_TRY(Start());
  auto result = engine_->Call(arguments);
  if (engine_->IsSpent()) engine_.reset();
  return result;
}

}  // namespace muster::script
