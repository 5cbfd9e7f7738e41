#pragma once

#include <map>
#include <string>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::work {

// Ensures that a run keeps writing to the same targets. A target's identity, as given by the sink,
// is stored per incarnation of the run when first asked for; every later answer must match. Used by
// one thread; `store` must outlive it.
class TargetCheck {
 public:
  TargetCheck(store::Store& store, std::string run) : store_(store), run_(std::move(run)) {}

  // kIncompatible: the target was replaced or is gone, and with it what was written before.
  Status Check(pipeline::Sink& sink, const std::string& incarnation, const std::string& target);

  // The same for all targets used by this incarnation.
  Status CheckAll(pipeline::Sink& sink, const std::string& incarnation);

  // The incarnation of the last CheckAll.
  const std::string& checked() const { return checked_; }

 private:
  Result<std::string> Stored(const std::string& key);
  Result<std::string> FirstOf(const std::string& key, const std::string& target,
                              const std::string& identity);

  store::Store& store_;
  const std::string run_;
  std::string checked_;
  std::map<std::string, std::string> known_;  // identities, by key
};

}  // namespace muster::work
