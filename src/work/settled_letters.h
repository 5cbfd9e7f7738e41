#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"
#include "work/records.h"

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

  // Adds letters that became what `counts` says, unknown which became what. Known ones are not
  // counted again.
  Status Add(const std::vector<SettledLetter>& letters, const pipeline::Counts& counts);

 private:
  // What a record has to count.
  struct Share {
    int64_t skipped = 0;  // letters not counted in any record yet
    // What transforms made of the letters beyond one document each. Counted with the first letter:
    // repeating this after a crash finds that letter counted, and so the rest.
    uint64_t first = 0;
    RedriveBody::Outcome more = {};
  };
  Status AddTo(const std::string& key, const std::vector<SettledLetter>& letters, Share& share);

  store::Store& store_;
  const std::string run_;
  std::set<uint64_t> settled_;
};

}  // namespace muster::work
