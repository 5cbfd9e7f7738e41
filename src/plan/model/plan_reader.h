#pragma once

#include "core/yaml.h"
#include "plan/model/fields.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Turns a YAML document into a plan. Checks each field by itself; CheckRules checks how they fit
// together.
class PlanReader {
 public:
  PlanReader(const YamlDocument& document, Problems& problems, Plan& plan)
      : root_(document.root), problems_(problems), plan_(plan) {}

  void Read();

 private:
  void ReadVariables(const YamlNode& node);
  void ReadInputs(const YamlNode& node);
  void ReadNames(const YamlNode& node);
  void ReadPools(const YamlNode& node);
  void ReadPrices(const YamlNode& node);
  void ReadRates(const YamlNode& node);
  void ReadProfiles(const YamlNode& node);
  void ReadProfile(const YamlEntry& entry);
  void ReadObjects(const YamlNode& node);
  void ReadScripts(const YamlNode& node);
  void ReadScript(const YamlEntry& entry);
  void ReadCounts(const YamlNode& node, std::map<std::string, Reference>& counts);
  void ReadRanks(const YamlNode& node);
  void ReadRank(const YamlNode& node);

  // `retry` and `timeout` by phase, for all tasks.
  void ReadPhases(FieldReader& fields);
  // The same for one task; it starts with the rules of its phase.
  void ReadTaskRules(FieldReader& fields, PhaseRules& rules);
  void ReadRetry(const YamlNode& node, RetryRule& retry);

  bool IsMap(const YamlNode& node, std::string_view what);
  // Whether a name consists of letters, digits and _ - . only, and is short enough.
  bool IsName(const YamlNode& key, std::string_view what);
  void CheckIdentifier(FieldReader& fields, std::string_view field, const std::string& value);
  void CheckInside(FieldReader& fields, const std::string& file);

  const YamlNode& root_;
  Problems& problems_;
  Plan& plan_;
  PhaseRules extract_{.retry = {30, 2, 2}, .timeout_s = 4 * 3'600};
  PhaseRules transform_{.retry = {120, 2, 2}, .timeout_s = 8 * 3'600};
};

}  // namespace muster::plan
