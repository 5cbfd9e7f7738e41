#include "store/dynamodb/dynamodb_candidates.h"

#include <algorithm>

#include "core/mutex.h"

namespace muster::store {
namespace {

constexpr int kLeastAsked = 25;
constexpr int kMostAsked = 250;
constexpr std::chrono::seconds kFreshFor{1};
constexpr std::chrono::seconds kSettledFor{5};  // far longer than an index usually lags
constexpr size_t kMaxSettled = 10'000;
constexpr size_t kMaxQueues = 1'000;  // beyond that all are dropped, which only costs requests

}  // namespace

std::shared_ptr<DynamoDbCandidates::Queue> DynamoDbCandidates::Find(const std::string& kind,
                                                                    const std::string& queue) {
  const MutexLock lock(mutex_);
  if (queues_.size() >= kMaxQueues && !queues_.contains({kind, queue})) queues_.clear();
  auto& found = queues_[{kind, queue}];
  if (found == nullptr) found = std::make_shared<Queue>();
  return found;
}

Result<std::optional<DynamoDbCandidates::Candidate>> DynamoDbCandidates::Next(
    const std::string& kind, const std::string& queue, const Ask& ask) {
  const std::shared_ptr<Queue> known = Find(kind, queue);
  const MonoTime arrived = env_.MonoNow();
  const MutexLock lock(known->mutex);
  // Another claim queried meanwhile and found nothing.
  if (known->found_none && known->began > arrived) return std::optional<Candidate>{};
  const bool stale =
      env_.MonoNow() - known->asked > kFreshFor || (known->lost > 1 && known->lost > known->won);
  if (known->list.empty() || stale) {
    MUSTER_TRY(Refill(*known, ask));
  }
  if (known->list.empty()) return std::optional<Candidate>{};
  if (known->contended || known->lost > 0) {
    std::swap(known->list.front(), known->list[env_.Random() % known->list.size()]);
  }
  Candidate next = std::move(known->list.front());
  known->list.pop_front();
  return std::optional<Candidate>(std::move(next));
}

Status DynamoDbCandidates::Refill(Queue& queue, const Ask& ask) {
  queue.list.clear();
  queue.began = env_.MonoNow();
  // A quarter lost: others compete for the same candidates, so request more.
  queue.contended = queue.lost * 4 > queue.won + queue.lost;
  queue.limit = queue.contended ? std::min(queue.limit * 2, kMostAsked)
                                : std::max(queue.limit / 2, kLeastAsked);
  queue.won = 0;
  queue.lost = 0;
  while (true) {
    MUSTER_ASSIGN(std::vector<Candidate> proposed, ask(queue.limit));
    const MonoTime now = env_.MonoNow();
    queue.asked = now;
    std::erase_if(queue.settled,
                  [&](const auto& entry) { return now - entry.second > kSettledFor; });
    for (Candidate& candidate : proposed) {
      if (!queue.settled.contains({candidate.key, candidate.version})) {
        queue.list.push_back(std::move(candidate));
      }
    }
    queue.found_none = proposed.empty();
    // Everything it proposed is settled, so the index lags: due records may come after that.
    const bool behind = queue.list.empty() && !proposed.empty();
    if (!behind || queue.limit == kMostAsked) return {};
    queue.limit = std::min(queue.limit * 4, kMostAsked);
  }
}

void DynamoDbCandidates::Settled(const std::string& kind, const std::string& queue,
                                 const Candidate& candidate, bool by_us) {
  const std::shared_ptr<Queue> known = Find(kind, queue);
  const MonoTime now = env_.MonoNow();
  const MutexLock lock(known->mutex);
  ++(by_us ? known->won : known->lost);
  if (known->settled.size() >= kMaxSettled) known->settled.clear();
  known->settled[{candidate.key, candidate.version}] = now;
}

}  // namespace muster::store
