#include "states/asl/jsonata_engine.h"

#include "script/jsonata.h"

namespace muster::states {
namespace {

class ReferenceEngine final : public JsonataEngine {
 public:
  explicit ReferenceEngine(Env& env) : jsonata_(env) {}

  Expected<std::optional<Json>, std::string> Evaluate(const std::string& expression,
                                                      const Bindings& bindings) override {
    auto value = jsonata_.Evaluate(expression, bindings);
    if (!value) return Unexpected(std::move(value).error().message);
    return *std::move(value);
  }

  Status Check(const std::string& expression) override { return jsonata_.Check(expression); }

 private:
  script::Jsonata jsonata_;
};

}  // namespace

std::unique_ptr<JsonataEngine> NewJsonataEngine(Env& env) {
  return std::make_unique<ReferenceEngine>(env);
}

}  // namespace muster::states
