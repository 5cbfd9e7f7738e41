#include "replica/assignment.h"

#include <algorithm>
#include <numeric>

namespace muster::replica {
namespace {

std::vector<std::string> InOrder(const Assignment& before, std::vector<std::string> members) {
  std::sort(members.begin(), members.end());
  std::vector<std::string> ordered;
  for (const std::string& member : before.members) {
    if (std::binary_search(members.begin(), members.end(), member)) ordered.push_back(member);
  }
  for (std::string& member : members) {
    if (before.PartitionOf(member) < 0) ordered.push_back(std::move(member));
  }
  return ordered;
}

// Keeps as many slots in place as possible and distributes the rest.
std::vector<int> MoveFewest(const Assignment& before, const std::vector<std::string>& members,
                            int slots) {
  const int count = static_cast<int>(members.size());
  std::vector<int> owners(static_cast<size_t>(slots), -1);
  std::vector<int> owned(members.size(), 0);
  for (size_t slot = 0; slot < before.owners.size() && slot < owners.size(); ++slot) {
    const std::string& owner = before.members[static_cast<size_t>(before.owners[slot])];
    const auto found = std::find(members.begin(), members.end(), owner);
    if (found == members.end()) continue;
    owners[slot] = static_cast<int>(found - members.begin());
    ++owned[static_cast<size_t>(owners[slot])];
  }
  // When slots do not divide evenly, the members with the most keep the extra one.
  std::vector<int> by_count(members.size());
  std::iota(by_count.begin(), by_count.end(), 0);
  std::stable_sort(by_count.begin(), by_count.end(), [&](int a, int b) {
    return owned[static_cast<size_t>(a)] > owned[static_cast<size_t>(b)];
  });
  std::vector<int> quota(members.size(), slots / count);
  for (int i = 0; i < slots % count; ++i) {
    ++quota[static_cast<size_t>(by_count[static_cast<size_t>(i)])];
  }
  for (size_t slot = owners.size(); slot-- > 0;) {
    if (owners[slot] < 0) continue;
    const auto owner = static_cast<size_t>(owners[slot]);
    if (owned[owner] <= quota[owner]) continue;
    --owned[owner];
    owners[slot] = -1;
  }
  size_t next = 0;
  for (int& owner : owners) {
    if (owner >= 0) continue;
    while (owned[next] >= quota[next]) ++next;
    owner = static_cast<int>(next);
    ++owned[next];
  }
  return owners;
}

}  // namespace

std::vector<int> Assignment::SlotsOf(int partition) const {
  std::vector<int> slots;
  for (size_t slot = 0; slot < owners.size(); ++slot) {
    if (owners[slot] == partition) slots.push_back(static_cast<int>(slot));
  }
  return slots;
}

int Assignment::PartitionOf(const std::string& member) const {
  const auto found = std::find(members.begin(), members.end(), member);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

Assignment Assign(const Assignment& before, std::vector<std::string> members, int slots,
                  Strategy strategy) {
  Assignment after;
  after.members = InOrder(before, std::move(members));
  const int64_t count = static_cast<int64_t>(after.members.size());
  if (count == 0) return after;
  if (strategy == Strategy::kIncremental) {
    after.owners = MoveFewest(before, after.members, slots);
    return after;
  }
  for (int64_t slot = 0; slot < slots; ++slot) {
    after.owners.push_back(static_cast<int>(slot * count / slots));
  }
  return after;
}

}  // namespace muster::replica
