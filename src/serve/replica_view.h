#pragma once

#include <deque>
#include <map>
#include <string>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/result.h"
#include "serve/series.h"
#include "serve/site.h"

namespace muster::serve {

// Replica sets, as docs/api/openapi.yaml describes them. Remembers the transitions it has seen,
// since a set's records hold only its present state. Thread-safe.
class ReplicaViews {
 public:
  // The sets of a store by "STORE/SET".
  Status AddSummaries(const Site& site, const SiteStore& store, Json& into);

  Result<Json> One(const Site& site, const SiteStore& store, const std::string& set,
                   SeriesBook& series);

 private:
  struct Transition {
    WallTime at{};
    int64_t generation = 0;
    std::string what;
    std::string cause;
  };
  struct Seen {
    bool any = false;
    int64_t generation = 0;
    replica::Generation::Phase phase = replica::Generation::Phase::kPreparing;
    std::map<std::string, replica::MemberState::Phase> members;
    std::deque<Transition> transitions;
  };

  Result<Json> Summary(const Site& site, const SiteStore& store, const std::string& set);
  void Notice(const std::string& key, const replica::SetView& view, WallTime now);
  Json TransitionsOf(const std::string& key);

  Mutex mutex_;
  std::map<std::string, Seen> seen_ GUARDED_BY(mutex_);
};

}  // namespace muster::serve
