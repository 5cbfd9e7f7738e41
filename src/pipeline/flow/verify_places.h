#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/migrate.h"
#include "pipeline/flow/verify_side.h"

namespace muster::pipeline {

// Where the documents of a comparison belong, if they choose targets. A place is the name that the
// target's source gives to a collection, so that an alias and its index are one; of the pair that
// is compared it is empty. Used by one thread.
class VerifyPlaces {
 public:
  // `choose`: documents may choose targets; else all places are empty. `target` must outlive it.
  VerifyPlaces(const VerifySide& target, bool choose) : target_(target), choose_(choose) {}

  std::string_view PlaceOf(const SeenDocument& seen);

  // What identifies a document of these places: the id, after the place. Valid until the next call.
  std::string_view KeyOf(const SeenDocument& seen);
  DocumentHash ContentOf(const SeenDocument& seen);

  // The first error of PlaceOf, which then takes the name for the place.
  const Status& status() const { return status_; }

  // The places of a side, as collections of the target that exist.
  Result<std::vector<std::string>> Collections(const std::map<std::string, int64_t>& places) const;

 private:
  std::string Find(std::string_view name);

  const VerifySide& target_;
  const bool choose_;
  std::map<std::string, std::string, std::less<>> known_;  // places, by name
  std::string key_;
  Status status_;
};

}  // namespace muster::pipeline
