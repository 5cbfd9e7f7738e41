#include "script/jsonata.h"

#include <cstdint>

#include "core/mutex.h"
#include "core/sha256.h"

namespace muster::script {

// JSONata's source, followed by jsonata.js.
extern const std::string_view kJsonataScript;

namespace {

// Computes $hash for "ALGORITHM\ntext". Empty: unknown algorithm.
Result<std::string> HashForScript(std::string_view request) {
  const size_t newline = request.find('\n');
  const std::string_view algorithm = request.substr(0, newline);
  const std::string_view text = request.substr(newline + 1);
  Result<std::string> hash = HashHex(algorithm, text);
  if (!hash && hash.error().code == Code::kInvalid) return std::string();
  return hash;
}

std::string TextOf(const Jsonata::Bindings& bindings) {
  std::string text = "{";
  for (const auto& [name, value] : bindings) {
    if (text.size() > 1) text += ',';
    text += ToJsonText(name) + ':' + ToJsonText(*value);
  }
  return text + '}';
}

}  // namespace

Jsonata::Jsonata(Env& env, const JsLimits& limits) : env_(env), limits_(limits) {}

Jsonata::~Jsonata() = default;

Result<std::optional<Json>> Jsonata::Evaluate(const std::string& expression,
                                              const Bindings& bindings, const Json* input) {
  const Json request = {{"expression", expression},
                        {"has_input", input != nullptr},
                        {"now", env_.WallNow().time_since_epoch().count()},
                        {"seed", static_cast<int64_t>(env_.Random() >> 11U)}};
  MUSTER_ASSIGN(Json answer,
                Ask(request, TextOf(bindings), input == nullptr ? "null" : ToJsonText(*input)));
  const std::string& kind = answer[0].get_ref<const std::string&>();
  if (kind == "value") return std::optional<Json>(std::move(answer[1]));
  if (kind == "undefined") return std::optional<Json>();
  if (kind == "function") return Error{Code::kIncompatible, "the value is a function"};
  return Error{Code::kInvalid, answer[1].get<std::string>()};
}

Status Jsonata::Check(const std::string& expression) {
  const Json request = {{"expression", expression}, {"check", true}, {"now", 0}, {"seed", 0}};
  MUSTER_ASSIGN(const Json answer, Ask(request, "{}", "null"));
  if (answer[0] == "value") return {};
  std::string message = answer[1].get<std::string>();
  const auto position = answer[2].get<int64_t>();
  if (position > 0) message += " (at character " + std::to_string(position) + ")";
  return Error{Code::kInvalid, std::move(message)};
}

// The result from jsonata.js: ["value", it], ["undefined"], ["function"] or ["error", words,
// where].
Result<Json> Jsonata::Ask(const Json& request, std::string_view bindings, std::string_view input) {
  MUSTER_ASSIGN(auto engine, Borrow());
  auto text = engine->Call({ToJsonText(request), bindings, input});
  {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(engine));
  }
  MUSTER_TRY(text);
  // Not ParseJson: a float may print as an integer beyond 64 bits, and must stay a float.
  return Json::parse(**text, nullptr, false);
}

Result<std::unique_ptr<JsFunction>> Jsonata::Borrow() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto engine = std::move(idle_.back());
      idle_.pop_back();
      return engine;
    }
  }
  return JsFunction::Compile(kJsonataScript, "JSONata", limits_, HashForScript,
                             JsNumbers::kMovedIntegers);
}

}  // namespace muster::script
