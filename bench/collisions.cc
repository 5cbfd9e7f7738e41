#include "collisions.h"

#include <atomic>
#include <barrier>
#include <stdexcept>
#include <thread>

#include "ours.h"
#include "support/http_relay.h"
#include "support/shared_server.h"

namespace muster::bench {
namespace {

int Occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Due one after the other, as items are that were not all created by one write: so nothing but the
// store's own chance keeps workers from wanting the same one.
void CreateItems(store::Store& store, int count) {
  for (int i = 0; i < count; ++i) {
    store::Record record;
    record.kind = kKind;
    record.queue = kQueue;
    record.key = "item" + std::to_string(i);
    const store::Change change = store::Change::Put(std::move(record), store::Due::AtOnce());
    if (!Must(store.Write({&change, 1})).front().applied) {
      throw std::runtime_error("an item could not be created");
    }
  }
}

}  // namespace

std::vector<int> MeasureCollisions(const testing::OpenSearchServer& server, int workers,
                                   int rounds) {
  std::atomic<int> conflicts = 0;
  testing::HttpRelay relay(
      server.port(), {},
      [&](const testing::HttpServerRequest&,
          const net::HttpResponse& response) -> std::optional<testing::HttpServerReply> {
        // The name of the error stands once in the answer to each item of a _bulk.
        conflicts += Occurrences(response.body, "\"version_conflict_engine_exception\"");
        return std::nullopt;
      });
  std::vector<int> counts;
  for (int round = 0; round < rounds; ++round) {
    const std::string url =
        "opensearch+http://127.0.0.1:" + std::to_string(relay.port()) +
        "?namespace=" + testing::UniqueName("collisions" + std::to_string(round));
    CreateItems(*MustOpen(url), workers);
    std::vector<std::unique_ptr<store::Store>> stores;
    for (int i = 0; i < workers; ++i) stores.push_back(MustOpen(url));
    conflicts = 0;
    std::atomic<int> claimed = 0;
    std::barrier ready(workers);
    std::vector<std::jthread> threads;
    for (const auto& store : stores) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        const auto records = store->Claim(NewClaim(1));
        if (records) claimed += static_cast<int>(records->size());
      });
    }
    for (std::jthread& thread : threads) thread.join();
    if (claimed != workers) {
      throw std::runtime_error("only " + std::to_string(claimed) + " of " +
                               std::to_string(workers) + " items were claimed");
    }
    counts.push_back(conflicts);
  }
  return counts;
}

}  // namespace muster::bench
