#include "base/yaml.h"
#include "muster/migrate.h"

namespace muster {
namespace {

class NoTransforms final : public TransformPlan {
 public:
  Result<std::vector<std::unique_ptr<Transform>>> Make() const override {
    return std::vector<std::unique_ptr<Transform>>();
  }
  std::string TargetName(const std::string& collection) const override { return collection; }
};

}  // namespace

Result<std::unique_ptr<TransformPlan>> ParseTransforms(const std::string& text,
                                                       const std::string& file) {
  if (text.empty()) return std::make_unique<NoTransforms>();
  return Error{Code::kInvalid, file + ": no transforms are known yet"};
}

}  // namespace muster
