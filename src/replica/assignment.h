#pragma once

#include <string>
#include <vector>

#include "muster/replica.h"

namespace muster {

// Who owns which slots: members in the order of their partition keys, and for each slot the key of
// its partition.
struct Assignment {
  std::vector<std::string> members = {};
  std::vector<int> owners = {};

  std::vector<int> SlotsOf(int partition) const;
  int PartitionOf(const std::string& member) const;  // -1: none

  bool operator==(const Assignment&) const = default;
};

// The assignment of `slots` slots to `members`, decided by the arguments alone: whoever computes it
// gets the same. Nobody has more than one slot more than another. Members of before come first, in
// the order they had. kIncremental moves no more slots than it must.
Assignment Assign(const Assignment& before, std::vector<std::string> members, int slots,
                  Strategy strategy);

}  // namespace muster
