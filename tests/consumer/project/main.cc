#include <iostream>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace {

// Writes one record that is due and claims it.
muster::Status ClaimGreeting() {
  MUSTER_ASSIGN(auto store, muster::store::OpenStore("memory:", muster::RealEnv()));

  muster::store::Record greeting{.kind = "note", .queue = "default", .key = "greeting"};
  greeting.body = R"({"text":"hello"})";
  const std::vector changes{muster::store::Change::Put(greeting, muster::store::Due::Now())};
  MUSTER_TRY(store->Write(changes));

  muster::store::ClaimRequest request{.kind = "note", .queue = "default"};
  request.owner = "consumer";
  request.claim_id = muster::RealEnv().NewId();
  MUSTER_ASSIGN(const auto claimed, store->Claim(request));
  for (const muster::store::Record& record : claimed) {
    std::cout << "claimed " << record.key << " at epoch " << record.epoch << ": " << record.body
              << "\n";
  }
  return {};
}

}  // namespace

int main() {
  if (muster::Status status = ClaimGreeting(); !status) {
    std::cerr << status.error().ToString() << "\n";
    return 1;
  }
  return 0;
}
