#include "contract/backends.h"

#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>

#include "sim/faulty_store.h"
#include "sim/simulation.h"

namespace muster::testing {
namespace {

using std::chrono::milliseconds;

// The simulator's store without faults, in virtual time. Each call is made by a simulated process,
// which is driven until it has its result.
class SimulatedBackend final : public Backend {
 public:
  SimulatedBackend() : sim_(1, sim::FaultPlan::None()) {}

  std::unique_ptr<store::Store> Open(const std::string& space, Env& /*env*/) override {
    auto& store = stores_[space];
    if (store == nullptr) store = std::make_unique<sim::FaultyStore>(sim_, sim::StoreObserver{});
    return std::make_unique<Driven>(sim_, *store);
  }
  Env& World() override { return world_; }

 private:
  // Runs `call` as a separate process, to its end.
  template <class Call>
  static auto Drive(sim::Simulation& sim, Call call) {
    std::optional<decltype(call())> answer;
    sim.AddProcess("caller", [&](Env&, std::stop_token) { answer.emplace(call()); });
    sim.Run();
    if (sim.violation()) throw std::runtime_error(sim.violation()->message);
    return *std::move(answer);
  }

  // No wrapper: a call that was forwarded would not be driven.
  class Driven final : public store::Store {
   public:
    Driven(sim::Simulation& sim, store::Store& store) : sim_(sim), store_(store) {}
    Result<std::optional<store::Record>> Get(std::string_view kind, std::string_view key) override {
      return Drive(sim_, [&] { return store_.Get(kind, key); });
    }
    Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                            std::string_view after, int limit) override {
      return Drive(sim_, [&] { return store_.Scan(kind, prefix, after, limit); });
    }
    Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
      return Drive(sim_, [&] { return store_.Write(changes); });
    }
    Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override {
      return Drive(sim_, [&] { return store_.Claim(request); });
    }
    Result<WallTime> Now() override {
      return Drive(sim_, [&] { return store_.Now(); });
    }
    void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) override {
      Drive(sim_, [&] {
        store_.Wait(kind, timeout, stop);
        return true;
      });
    }

   private:
    sim::Simulation& sim_;
    store::Store& store_;
  };

  class World final : public Env {
   public:
    explicit World(sim::Simulation& sim) : sim_(sim) {}
    WallTime WallNow() override { return WallTime(std::chrono::floor<milliseconds>(sim_.now())); }
    MonoTime MonoNow() override { return MonoTime(sim_.now()); }
    bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
      return Drive(sim_, [&] {
        sim_.Pass(duration);
        return !stop.stop_requested();
      });
    }
    uint64_t Random() override { return sim_.random().Next(); }

   private:
    sim::Simulation& sim_;
  };

  std::map<std::string, std::unique_ptr<sim::FaultyStore>> stores_;
  sim::Simulation sim_;  // destroyed first
  class World world_ {
    sim_
  };
};

}  // namespace

std::vector<std::string> BackendNames() { return {"simulated"}; }

std::unique_ptr<Backend> NewBackend(const std::string&, std::string*) {
  return std::make_unique<SimulatedBackend>();
}

}  // namespace muster::testing
