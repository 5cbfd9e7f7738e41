#pragma once

#include <string>
#include <vector>

#include "muster/replica.h"

namespace muster::replica {

// Slot ownership: members in partition order, and the partition of each slot.
struct Assignment {
  std::vector<std::string> members = {};
  std::vector<int> owners = {};

  std::vector<int> SlotsOf(int partition) const;
  int PartitionOf(const std::string& member) const;  // -1: none

  bool operator==(const Assignment&) const = default;
};

// Assigns `slots` slots to `members`, deterministically: everyone computes the same result. Slot
// counts differ by at most one. Existing members come first, in their previous order. kIncremental
// moves as few slots as possible.
Assignment Assign(const Assignment& before, std::vector<std::string> members, int slots,
                  Strategy strategy);

}  // namespace muster::replica
