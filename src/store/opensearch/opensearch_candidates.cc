#include "store/opensearch/opensearch_candidates.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>

#include "core/mutex.h"

namespace muster::store {
namespace {

// Candidates are small: their bodies come with the claim. Without contention the page grows, so
// that searches become rare; with it, results are soon outdated.
constexpr size_t kFirstPage = 500;
constexpr size_t kMost = 5'000;  // half of a search's maximum
constexpr size_t kClaimsOfAPage = 25;
constexpr std::chrono::seconds kSpreadFor{10};

void Shuffle(std::span<Candidate> candidates, Env& env) {
  for (size_t left = candidates.size(); left > 1; --left) {
    std::swap(candidates[left - 1], candidates[env.Random() % left]);
  }
}

bool SameVersion(DocumentVersion a, DocumentVersion b) {
  return a.seq_no == b.seq_no && a.primary_term == b.primary_term;
}

}  // namespace

Candidates::Candidates(Env& env) : env_(env), page_(kFirstPage) {}

Result<std::vector<Candidate>> Candidates::Take(size_t count, MonoTime arrived,
                                                const Search& search) {
  {
    const MutexLock lock(mutex_);
    if (known_.size() >= count) return TakeKnown(count);
  }
  const MutexLock turn(searching_);
  size_t size = 0;
  {
    const MutexLock lock(mutex_);
    if (known_.size() >= count || searched_ >= arrived) return TakeKnown(count);
    size = std::min(std::max(page_, kClaimsOfAPage * count) + spent_.size(), kMost);
  }
  const MonoTime began = env_.MonoNow();
  MUSTER_ASSIGN(std::vector<Candidate> found, search(size));
  const MutexLock lock(mutex_);
  searched_ = began;
  if (found.size() == size) page_ = std::min(2 * page_, kMost);
  Refill(std::move(found));
  return TakeKnown(count);
}

std::vector<Candidate> Candidates::TakeKnown(size_t count) {
  const auto taken = static_cast<std::ptrdiff_t>(std::min(count, known_.size()));
  std::vector<Candidate> candidates(std::make_move_iterator(known_.end() - taken),
                                    std::make_move_iterator(known_.end()));
  known_.resize(known_.size() - candidates.size());
  std::reverse(candidates.begin(), candidates.end());
  for (const Candidate& candidate : candidates) spent_[candidate.id] = candidate.version;
  return candidates;
}

void Candidates::Refill(std::vector<Candidate> found) {
  // No need to remember what a search no longer shows.
  std::map<std::string, DocumentVersion> still_shown;
  std::erase_if(found, [&](const Candidate& candidate) REQUIRES(mutex_) {
    const auto spent = spent_.find(candidate.id);
    if (spent == spent_.end() || !SameVersion(spent->second, candidate.version)) return false;
    still_shown.insert(*spent);
    return true;
  });
  spent_ = std::move(still_shown);
  known_ = std::move(found);
  std::reverse(known_.begin(), known_.end());
  if (env_.MonoNow() < spread_until_) return Shuffle(known_, env_);
  const size_t older = known_.size() / 2;
  const std::span<Candidate> all(known_);
  Shuffle(all.last(older), env_);
  Shuffle(all.first(all.size() - older), env_);
}

void Candidates::GiveBack(const Candidate& candidate) {
  const MutexLock lock(mutex_);
  spent_.erase(candidate.id);
}

void Candidates::Collided() {
  const MutexLock lock(mutex_);
  known_.clear();
  page_ = kFirstPage;
  spread_until_ = env_.MonoNow() + kSpreadFor;
}

}  // namespace muster::store
