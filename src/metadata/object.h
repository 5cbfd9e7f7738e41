#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"

namespace muster::metadata {

// In the order of creation: each may refer to those before it. Indices come before templates, which
// would apply to them: an index may be older than a template that matches its name.
enum class Kind {
  kPolicy,
  kPipeline,
  kIndex,
  kComponentTemplate,
  kIndexTemplate,
  kTemplate,
  kDataStream,
};

inline constexpr EnumNames<Kind, 7> kKinds{{{{Kind::kPolicy, "policy"},
                                             {Kind::kPipeline, "pipeline"},
                                             {Kind::kIndex, "index"},
                                             {Kind::kComponentTemplate, "component_template"},
                                             {Kind::kIndexTemplate, "index_template"},
                                             {Kind::kTemplate, "template"},
                                             {Kind::kDataStream, "data_stream"}}}};

// Metadata of a cluster, with its body as the cluster's API reads and writes it: {"settings",
// "mappings", "aliases"} of an index.
struct Object {
  Kind kind = Kind::kIndex;
  std::string name;
  Json body = Json::object();
};

enum class Outcome {
  kOk,         // as it is in the source
  kChanged,    // adapted to the target
  kLeftOut,    // not meant for the target
  kDifferent,  // the target has a different one of that name, which is left alone
  kRefused,    // the target cannot have it
};

inline constexpr EnumNames<Outcome, 5> kOutcomes{{{{Outcome::kOk, "ok"},
                                                   {Outcome::kChanged, "changed"},
                                                   {Outcome::kLeftOut, "left out"},
                                                   {Outcome::kDifferent, "different"},
                                                   {Outcome::kRefused, "refused"}}}};

// The outcome for an object.
struct Verdict {
  Outcome outcome = Outcome::kOk;
  Json body = Json::object();             // for the target; if it is ok or changed
  std::vector<std::string> changes = {};  // what was adapted, one sentence each
  std::string reason = {};                // why it is left out, different or refused
  std::string name = {};                  // in the target; if it is ok or changed

  bool IsKept() const { return outcome == Outcome::kOk || outcome == Outcome::kChanged; }
  // Changes and reason, in one line.
  std::string Detail() const;
};

// Whether objects of this kind have settings, mappings and aliases.
constexpr bool HasContent(Kind kind) {
  return kind == Kind::kIndex || kind == Kind::kTemplate || kind == Kind::kIndexTemplate ||
         kind == Kind::kComponentTemplate;
}

// The settings, mappings and aliases of an object are in its body or, of newer templates, in a
// member of it.
template <class AnyJson>
AnyJson& ContentOf(Kind kind, AnyJson& body) {
  return kind == Kind::kIndexTemplate || kind == Kind::kComponentTemplate ? body["template"] : body;
}

}  // namespace muster::metadata
