#include "plan/explain/prices.h"

namespace muster::plan {

Prices ReadPriceFields(const YamlNode& node, Problems& problems) {
  constexpr double kMost = 1e6;
  Prices prices;
  FieldReader fields(problems, node, "prices");
  fields.Number("per_row", 0, kMost, prices.per_row);
  fields.Number("per_dpu_hour", 0, kMost, prices.per_dpu_hour);
  fields.Number("per_thousand_transitions", 0, kMost, prices.per_thousand_transitions);
  return prices;
}

Result<Prices> ReadPriceFile(const std::string& path) {
  MUSTER_ASSIGN(const YamlDocument document, ReadYamlFile(path));
  Problems problems(path);
  const Prices prices = ReadPriceFields(document.root, problems);
  if (problems.empty()) return prices;
  std::string all;
  for (const std::string& problem : problems.Take()) all += (all.empty() ? "" : "\n") + problem;
  return Error{Code::kInvalid, all};
}

}  // namespace muster::plan
