#pragma once

#include <map>
#include <string>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster {

// Holds the targets of a run to those that it began to write to. The identity that a sink gives a
// target is stored, by incarnation of the run, when the target is first asked for; every later
// answer must be the same. Used by one thread; `store` must outlive it.
class TargetCheck {
 public:
  TargetCheck(Store& store, std::string run) : store_(store), run_(std::move(run)) {}

  // kIncompatible: the target is another one, or gone, and with it what was written before.
  Status Check(Sink& sink, const std::string& incarnation, const std::string& target);

  // The same for all targets that this incarnation has been asked for.
  Status CheckAll(Sink& sink, const std::string& incarnation);

  // The incarnation that CheckAll was last asked about.
  const std::string& checked() const { return checked_; }

 private:
  Result<std::string> Stored(const std::string& key);
  Result<std::string> FirstOf(const std::string& key, const std::string& target,
                              const std::string& identity);

  Store& store_;
  const std::string run_;
  std::string checked_;
  std::map<std::string, std::string> known_;  // identities, by key
};

}  // namespace muster
