#include "script/js.h"

#include <malloc.h>
#include <quickjs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/utf8.h"

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

// What a script has allocated, and whether it was ever refused more. QuickJS has its own limit but
// does not report reaching it: what it throws then may be anything.
class Memory {
 public:
  explicit Memory(size_t limit) : limit_(limit) {}

  bool was_refused() const { return was_refused_; }

  void* Allocate(size_t count, size_t size) {
    if (size != 0 && count > limit_ / size) {
      was_refused_ = true;
      return nullptr;
    }
    if (!Allows(count * size)) return nullptr;
    return Keep(std::calloc(count, size));
  }

  void* Reallocate(void* block, size_t size) {
    const size_t before = malloc_usable_size(block);
    if (size > before && !Allows(size - before)) return nullptr;
    void* moved = std::realloc(block, size);
    if (moved == nullptr && size != 0) return nullptr;
    held_ -= std::min(held_, before);
    return Keep(moved);
  }

  void Free(void* block) {
    held_ -= std::min(held_, malloc_usable_size(block));
    std::free(block);
  }

 private:
  bool Allows(size_t more) {
    if (more <= limit_ - held_) return true;
    was_refused_ = true;
    return false;
  }

  // The allocator may return slightly more than requested.
  void* Keep(void* block) {
    held_ = std::min(limit_, held_ + malloc_usable_size(block));
    return block;
  }

  const size_t limit_;
  size_t held_ = 0;
  bool was_refused_ = false;
};

constexpr JSMallocFunctions kMemoryFunctions = {
    .js_calloc = [](void* self, size_t count, size_t size) -> void* {
      return static_cast<Memory*>(self)->Allocate(count, size);
    },
    .js_malloc = [](void* self, size_t size) -> void* {
      return static_cast<Memory*>(self)->Reallocate(nullptr, size);
    },
    .js_free = [](void* self, void* block) { static_cast<Memory*>(self)->Free(block); },
    .js_realloc = [](void* self, void* block, size_t size) -> void* {
      return static_cast<Memory*>(self)->Reallocate(block, size);
    },
    .js_malloc_usable_size = [](const void* block) -> size_t {
      return malloc_usable_size(const_cast<void*>(block));
    }};

constexpr double kMaxSafeInteger = 9007199254740991;  // 2^53 - 1
constexpr size_t kSafeDigits = 15;                    // any integer of this many digits is below it

// The JSON parser has checked its syntax.
double DoubleOf(const char* text, size_t size) {
  double value = 0;
  if (std::from_chars(text, text + size, value).ec == std::errc()) return value;
  return std::strtod(std::string(text, size).c_str(), nullptr);  // overflow or underflow
}

// Reads and prints JSON numbers.
//
// QuickJS keeps a value's type in the lower half of a 64-bit tag and ignores the rest
// (JS_VALUE_GET_TAG). The upper half travels with the value, and computed values get a new tag. So
// a number there identifies the text the value was read from.
class Numbers {
 public:
  Numbers(JsNumbers mode, size_t max_bytes) : mode_(mode), max_bytes_(max_bytes) {}

  // Before the script can redefine BigInt.
  bool Start(JSContext* context) {
    const Value global(context, JS_GetGlobalObject(context));
    big_int_ = JS_GetPropertyStr(context, global.get(), "BigInt");
    return !JS_IsException(big_int_);
  }
  void End(JSContext* context) { JS_FreeValue(context, std::exchange(big_int_, JS_UNDEFINED)); }

  // Drops the texts. Values a script has kept from earlier documents become plain numbers.
  void Clear() {
    first_ += static_cast<uint32_t>(literals_.size());
    literals_.clear();
    bytes_.clear();
  }

  JSValue Read(JSContext* context, const char* text, size_t size) {
    const double value = DoubleOf(text, size);
    if (mode_ == JsNumbers::kFloats) return JS_NewFloat64(context, value);
    const std::string_view written(text, size);
    if (written == "-0" || written.find_first_of(".eE") != std::string_view::npos) {
      return Literal(context, value, written);
    }
    if (size <= kSafeDigits || std::abs(value) <= kMaxSafeInteger) {
      return JS_NewFloat64(context, value);
    }
    JSValue digits = JS_NewStringLen(context, text, size);
    if (JS_IsException(digits)) return digits;
    const JSValue integer = JS_Call(context, big_int_, JS_UNDEFINED, 1, &digits);
    JS_FreeValue(context, digits);
    return integer;
  }

  // Consumes the number and returns what to print.
  JSValue Print(JSContext* context, JSValue number) const {
    if (JS_IsBigInt(number)) {
      const Value owned(context, number);
      if (mode_ == JsNumbers::kExact) return JS_ToString(context, number);
      return JS_ThrowTypeError(context, "BigInt are forbidden in JSON.stringify");
    }
    const double value = JS_VALUE_GET_FLOAT64(number);
    if (mode_ == JsNumbers::kExact) {
      if (const auto text = TextOf(number)) {
        return JS_NewStringLen(context, text->data(), text->size());
      }
      if (!std::isfinite(value)) {
        return JS_ThrowRangeError(context, "%s was computed, which JSON does not have",
                                  std::isnan(value) ? "NaN" : "Infinity");
      }
      if (std::abs(value) > kMaxSafeInteger) {
        return JS_ThrowRangeError(
            context, "%g was computed, and numbers beyond 2^53 are rounded: use BigInt", value);
      }
    }
    return std::isfinite(value) ? number : JS_NULL;
  }

 private:
  struct Written {
    double value = 0;
    size_t begin = 0;
    size_t size = 0;
  };

  JSValue Literal(JSContext* context, double value, std::string_view text) {
    if (bytes_.size() + literals_.size() * sizeof(Written) > max_bytes_) {
      return JS_ThrowRangeError(context, "too many numbers");
    }
    const auto name = first_ + static_cast<uint32_t>(literals_.size());
    literals_.push_back({value, bytes_.size(), text.size()});
    bytes_ += text;
    JSValue number = JS_NewFloat64(context, value);
    static_assert(sizeof number.tag == sizeof(uint64_t));
    number.tag = static_cast<int64_t>(uint64_t{name} << 32U | static_cast<uint64_t>(number.tag));
    return number;
  }

  std::optional<std::string_view> TextOf(JSValueConst number) const {
    const uint32_t index = static_cast<uint32_t>(static_cast<uint64_t>(number.tag) >> 32U) - first_;
    if (index >= literals_.size()) return std::nullopt;
    const Written& written = literals_[index];
    // If the engine ever modified a value in place, it is a different number.
    if (std::bit_cast<uint64_t>(written.value) !=
        std::bit_cast<uint64_t>(JS_VALUE_GET_FLOAT64(number))) {
      return std::nullopt;
    }
    return std::string_view(bytes_).substr(written.begin, written.size);
  }

  const JsNumbers mode_;
  const size_t max_bytes_;
  JSValue big_int_ = JS_UNDEFINED;
  std::vector<Written> literals_;
  std::string bytes_;
  uint32_t first_ = 1;  // id of the first literal; 0 means none
};

// Reachable by callbacks through the QuickJS context.
struct Shared {
  const JsHost& host;
  Numbers numbers;
};

Shared& SharedOf(JSContext* context) { return *static_cast<Shared*>(JS_GetContextOpaque(context)); }

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

// cmake/patch_quickjs.cmake makes JSON call these.
extern "C" {
JSValue MusterReadJsonNumber(JSContext* context, const char* text, size_t size);
JSValue MusterPrintJsonNumber(JSContext* context, JSValue number);

JSValue MusterReadJsonNumber(JSContext* context, const char* text, size_t size) {
  return SharedOf(context).numbers.Read(context, text, size);
}

JSValue MusterPrintJsonNumber(JSContext* context, JSValue number) {
  return SharedOf(context).numbers.Print(context, number);
}
}

// A runtime with one script. Unusable once a limit was exceeded: jobs may be pending, memory may be
// full.
class JsFunction::Engine {
 public:
  Engine(const std::string& origin, const JsLimits& limits, const JsHost& host, JsNumbers numbers)
      : origin_(origin),
        limits_(limits),
        shared_{host, Numbers(numbers, limits.memory_bytes)},
        memory_(limits.memory_bytes) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  ~Engine() {
    if (context_ != nullptr) {
      JS_FreeValue(context_, function_);
      shared_.numbers.End(context_);
      JS_FreeContext(context_);
    }
    if (runtime_ != nullptr) JS_FreeRuntime(runtime_);
  }

  Status Start(const std::string& source) {
    runtime_ = JS_NewRuntime2(&kMemoryFunctions, &memory_);
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
    if (!JS_IsFunction(context_, value.get())) {
      return Error{Code::kInvalid, origin_ + ": the value of the script is not a function",
                   "end it with a function: (doc) => ..., or the name of one"};
    }
    function_ = JS_DupValue(context_, value.get());
    return {};
  }

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
      result = Value(context_, JS_Call(context_, function_, JS_UNDEFINED, count, values.data()));
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
    if (!question) return JS_ThrowTypeError(context, "host: the question has no text");
    const auto answer = SharedOf(context).host(*question);
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
    if (json.IsException()) return Thrown().Within("the result has no JSON");
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
        TextOf(context_, thrown.get()).value_or("something that has no text was thrown");
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
                 "look for a loop without end, or allow it more time"};
  }

  Error OutOfMemory() const {
    return Error{Code::kInvalid, origin_ + ": needs more than the " +
                                     std::to_string(limits_.memory_bytes >> 10) +
                                     " KiB of memory it may have"};
  }

  const std::string& origin_;
  const JsLimits& limits_;
  Shared shared_;
  Memory memory_;
  JSRuntime* runtime_ = nullptr;
  JSContext* context_ = nullptr;
  JSValue function_ = JS_UNDEFINED;
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

Status JsFunction::Start() {
  auto engine = std::make_unique<Engine>(origin_, limits_, host_, numbers_);
  MUSTER_TRY(engine->Start(source_));
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
