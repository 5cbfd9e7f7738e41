#include <iostream>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace {

// Writes a record that is due, claims it, and completes it.
muster::Status HandleGreeting() {
  muster::Env& env = muster::RealEnv();
  MUSTER_ASSIGN(auto store, muster::store::OpenStore("memory:", env));

  muster::store::Record greeting{.kind = "note", .queue = "default", .key = "greeting"};
  greeting.body = R"({"text":"hello"})";
  const std::vector changes{muster::store::Change::Put(greeting, muster::store::Due::AtOnce())};
  MUSTER_TRY(store->Write(changes));

  const muster::store::LeaseRequest request{
      .kind = "note", .queue = "default", .owner = "consumer"};
  MUSTER_ASSIGN(auto leases, muster::store::Lease::Claim(*store, request, env, {}));
  for (muster::store::Lease& lease : leases) {
    std::cout << "claimed " << lease.key() << " at epoch " << lease.epoch() << ": " << lease.body()
              << "\n";
    MUSTER_TRY(lease.End(R"({"text":"hello","said":true})"));
  }
  return {};
}

}  // namespace

int main() {
  if (muster::Status status = HandleGreeting(); !status) {
    std::cerr << status.error().ToString() << "\n";
    return 1;
  }
  return 0;
}
