#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metadata/cluster_version.h"
#include "metadata/object.h"
#include "metadata/rule.h"
#include "muster/result.h"

namespace muster::script {
class JsFunction;
}

namespace muster::metadata {

// The versions of source and target.
struct Versions {
  ClusterVersion from;
  ClusterVersion to;
};

// Overrides what indices and templates say.
struct Overrides {
  std::optional<int> shards = {};
  std::optional<int> replicas = {};
};

// Adapts objects to another version. Independent of servers: the same object always gets the same
// verdict. Used by one thread at a time.
class RuleSet {
 public:
  // Muster's own rules.
  static Result<RuleSet> BuiltIn();
  ~RuleSet();
  RuleSet(RuleSet&&) noexcept;
  RuleSet& operator=(RuleSet&&) noexcept;

  // The user's rules, which are applied first: YAML, or a JavaScript function if the name ends in
  // .js. kInvalid: the file cannot be read or is wrong, with the position.
  Status AddFile(const std::string& path);

  // ok, changed, left out or refused. An error of a user's script is a refusal.
  Verdict Apply(const Object& object, const Versions& versions, const Overrides& overrides) const;

 private:
  RuleSet();

  std::vector<Rule> own_;
  std::vector<Rule> built_in_;
  std::unique_ptr<script::JsFunction> script_;
};

}  // namespace muster::metadata
