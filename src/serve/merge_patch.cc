#include "serve/merge_patch.h"

#include <iterator>

namespace muster::serve {
namespace {

// The member `key`. `guess` is right if both objects have their members in the same order; looking
// up every member would take quadratic time.
Json::const_iterator Find(const Json& object, const Json::const_iterator& guess,
                          const std::string& key) {
  return guess != object.end() && guess.key() == key ? guess : object.find(key);
}

}  // namespace

void AppendMember(Json& object, const std::string& key, Json value) {
  object.get_ref<Json::Object&>().emplace_back(key, std::move(value));
}

Json MergePatch(const Json& before, const Json& after) {
  if (!before.is_object() || !after.is_object()) return before == after ? Json() : after;
  Json patch = Json::object();
  Json::const_iterator old = before.begin();
  for (Json::const_iterator now = after.begin(); now != after.end(); ++now) {
    const Json::const_iterator found = Find(before, old, now.key());
    if (found == before.end()) {
      AppendMember(patch, now.key(), now.value());
      continue;
    }
    Json change = MergePatch(found.value(), now.value());
    if (!change.is_null()) AppendMember(patch, now.key(), std::move(change));
    old = std::next(found);
  }
  Json::const_iterator now = after.begin();
  for (old = before.begin(); old != before.end(); ++old) {
    const Json::const_iterator found = Find(after, now, old.key());
    if (found == after.end()) {
      AppendMember(patch, old.key(), nullptr);
    } else {
      now = std::next(found);
    }
  }
  return patch.empty() ? Json() : patch;
}

}  // namespace muster::serve
