#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "metadata/created_index.h"  // IWYU pragma: export
#include "metadata/object.h"
#include "metadata/rule_set.h"
#include "metadata/streams.h"  // IWYU pragma: export
#include "metadata/target.h"
#include "muster/result.h"

namespace muster::metadata {

// An object of the source, and why it cannot be migrated as it is, if so: a closed index, say.
struct SourceObject {
  Object object;
  std::string refusal = {};
  bool is_unknown = false;  // stands for all objects of its kind, which the source does not show
};

enum class Mode {
  kEvaluate,  // report what would become of each object, and try it without keeping anything
  kMigrate,   // create what the target lacks
  kDiff,      // compare the target with what it should have
};

struct JobOptions {
  Overrides overrides = {};
  bool selects = false;  // only some indices: templates that match none of them are left out
};

// Documents of an index of the source to try its mapping with.
using Sampler = std::function<Result<std::vector<Sample>>(const std::string& index)>;

// One line of the report.
struct Reported {
  Kind kind = Kind::kIndex;
  std::string name;  // in the source
  Verdict verdict;
};

// Carries out one mode for all objects, each on its own: a refusal does not stop the others. An
// error is about the cluster. `report` is called as soon as an object is done.
class Job {
 public:
  Job(Target& target, const RuleSet& rules, const RuleSet& built_in, ClusterVersion from,
      JobOptions options)
      : target_(target),
        rules_(rules),
        built_in_(built_in),
        versions_{from, target.version()},
        options_(options) {}

  // What the sampler returns is tried by kEvaluate.
  Result<std::vector<Reported>> Run(Mode mode, std::vector<SourceObject> objects,
                                    const Sampler& sample,
                                    const std::function<void(const Reported&)>& report,
                                    const std::stop_token& stop);

 private:
  Result<bool> Knows(Kind kind);
  Result<Verdict> Decide(Mode mode, const SourceObject& one, const Sampler& sample);
  Result<Verdict> Carry(Mode mode, const Object& object, Verdict verdict, const Sampler& sample);
  Result<bool> DropUnknown(Kind kind, const Json& there, Verdict& verdict);
  // By the newest index of each. What the target's has grown from its own documents, or has in
  // another number, is no difference: only what changes or loses documents is.
  Result<Verdict> CompareStream(const Object& object, const Verdict& verdict, const Json& found);
  Result<Verdict> CompareWith(Mode mode, const Object& object, Verdict verdict, const Json& found,
                              const Sampler& sample);
  Result<CreatedIndex> Create(Kind kind, const std::string& name, const Json& body);
  Result<Verdict> Try(const Object& object, Verdict verdict, const Sampler& sample);
  Json Normalized(Kind kind, const std::string& name, const Json& found) const;

  Target& target_;
  const RuleSet& rules_;
  const RuleSet& built_in_;
  const Versions versions_;
  const JobOptions options_;
  std::map<Kind, bool> known_;        // whether the target has such objects
  std::vector<std::string> pending_;  // component templates that are only evaluated
  std::map<std::pair<Kind, std::string>, std::string> taken_;  // names in the target, by whom
};

// The objects in the global metadata of a source (pipeline::Source::GlobalMetadata).
std::vector<SourceObject> GlobalObjects(const Json& global, bool pipelines);

// Marks what indices do not need as not selected: templates whose patterns match none of them,
// component templates and policies that nothing else names.
void LeaveOutUnrelated(std::vector<SourceObject>& objects);

}  // namespace muster::metadata
