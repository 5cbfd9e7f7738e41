#include "pipeline/transform/javascript_transform.h"

#include "core/json.h"
#include "script/js.h"

namespace muster::pipeline {
namespace {

class JavaScriptTransform final : public Transform {
 public:
  explicit JavaScriptTransform(std::unique_ptr<script::JsFunction> function)
      : function_(std::move(function)) {}

  Result<bool> Apply(Document& document, Arena& arena) override {
    std::string meta = "{\"id\":";
    AppendJsonString(meta, document.id);
    meta += ",\"routing\":";
    AppendJsonString(meta, document.routing);
    meta += '}';
    MUSTER_ASSIGN(const auto result, function_->Call({document.body, meta}));
    if (!result || *result == "null") return false;
    if (!result->starts_with('{')) {
      return Error{Code::kInvalid,
                   "the function must return an object, but returned " + result->substr(0, 40)};
    }
    document.body = arena.Copy(*result);
    return true;
  }

 private:
  const std::unique_ptr<script::JsFunction> function_;
};

}  // namespace

Result<std::unique_ptr<Transform>> RunJavaScript(const JavaScript& script) {
  script::JsLimits limits;
  limits.time = std::chrono::milliseconds(script.time_ms);
  limits.memory_bytes = static_cast<size_t>(script.memory_mb) << 20;
  MUSTER_ASSIGN(auto function, script::JsFunction::Compile(script.source, script.origin, limits,
                                                           nullptr, script::JsNumbers::kExact));
  return std::make_unique<JavaScriptTransform>(std::move(function));
}

}  // namespace muster::pipeline
