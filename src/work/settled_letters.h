#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::work {

struct SettledLetter {
  uint64_t identity = 0;
  std::string item;  // the one that counts it as failed, by name
};

// The dead letters of a run that redrives have settled: their documents are written, or skipped by
// a transform. Stored by the letters' identities, spread over records by their first digits, so
// that a letter counts once, however often, from whichever file and by however many concurrent
// redrives it is taken. Used by one thread; `store` must outlive it.
class SettledLetters {
 public:
  SettledLetters(store::Store& store, std::string run) : store_(store), run_(std::move(run)) {}

  Status Load();
  bool Contains(uint64_t identity) const { return settled_.contains(identity); }

  // Adds letters, `skipped` of which, unknown which, were skipped. Known ones are not counted
  // again.
  Status Add(const std::vector<SettledLetter>& letters, int64_t skipped);

 private:
  Status AddTo(const std::string& key, const std::vector<SettledLetter>& letters, int64_t& skipped);

  store::Store& store_;
  const std::string run_;
  std::set<uint64_t> settled_;
};

}  // namespace muster::work
