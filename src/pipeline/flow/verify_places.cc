#include "pipeline/flow/verify_places.h"

#include <utility>

namespace muster::pipeline {
namespace {

// Of all collections that are compared together.
constexpr size_t kMostPlaces = 10'000;

}  // namespace

std::string_view VerifyPlaces::PlaceOf(const SeenDocument& seen) {
  if (!choose_ || seen.place == target_.collection) return {};
  const auto known = known_.find(seen.place);
  if (known != known_.end()) return known->second;
  if (known_.size() >= kMostPlaces && status_) {
    status_ = Error{Code::kFull, target_.collection + ": documents choose more than " +
                                     std::to_string(kMostPlaces) + " targets"};
  }
  return known_.emplace(seen.place, Find(seen.place)).first->second;
}

std::string VerifyPlaces::Find(std::string_view name) {
  std::string place(name);
  auto found = target_.source.TargetOf(place);
  // A cluster refuses to look up a name that no index can have.
  if (!found && found.error().code != Code::kInvalid && status_) status_ = found.error();
  if (!found || !*found) return place;  // none there: what was sent to it is missing
  return **found == target_.collection ? std::string() : **std::move(found);
}

std::string_view VerifyPlaces::KeyOf(const SeenDocument& seen) {
  const std::string_view place = PlaceOf(seen);
  if (place.empty()) return seen.id;
  key_ = place;
  key_ += '\0';
  return key_ += seen.id;
}

DocumentHash VerifyPlaces::ContentOf(const SeenDocument& seen) {
  DocumentHash content = seen.content;
  if (const std::string_view place = PlaceOf(seen); !place.empty()) {
    content = HashBytes(std::to_string(content.low) + "/" + std::to_string(content.high) + "/" +
                        std::string(place));
  }
  return content;
}

Result<std::vector<std::string>> VerifyPlaces::Collections(
    const std::map<std::string, int64_t>& places) const {
  std::vector<std::string> names{target_.collection};
  for (const auto& [place, documents] : places) {
    if (place.empty()) continue;
    MUSTER_ASSIGN(const auto found, target_.source.TargetOf(place));
    if (found && *found == place) names.push_back(place);
  }
  return names;
}

}  // namespace muster::pipeline
