#include <set>
#include <sstream>
#include <string>

#include "core/json_fields.h"
#include "sim/work_ledger.h"
#include "sim/work_process.h"
#include "sim/work_redrive.h"
#include "sim/work_scene.h"
#include "sim/workload.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kLongestLag = std::chrono::seconds(15);  // of a replica that takes over

class WorkWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    scene_ = std::make_unique<WorkScene>(sim);
    ledger_ = std::make_unique<WorkLedger>(*scene_);
    Random& random = sim.random();
    scene_->store = std::make_unique<FaultyStore>(sim, ledger_->StoreEvents());
    scene_->files = std::make_unique<SimFiles>(sim);
    scene_->store->AddHarshFaults();
    scene_->world.Make(random);
    if (random.OneIn(4)) {
      scene_->restored = random.OneIn(3);
      scene_->goes_back = true;
      scene_->store->MayGoBack(scene_->restored ? kLongestLoss : kLongestLag, random.OneIn(2));
    }
    MakeSink(random);
    scene_->terms = scene_->world.Terms(random, sim.terms());
    scene_->pace = random.UpTo<int64_t, std::nano>(std::chrono::seconds(3));
    scene_->buffered = random.OneIn(2);
    AddWorkers(random);
    AddRedrives(sim.terms());
    if (scene_->documents && !scene_->goes_back) {
      scene_->world.ChangeDocuments(sim, [this](const std::string& collection, int shard) {
        return IsCopied(collection, shard);
      });
    }
    // Drawn last, to move the other choices of a seed as little as possible.
    if (random.OneIn(3)) {
      scene_->max_failures = work::FailureLimit{.documents = random.Between(0, 2)};
    }
  }

  void Check() override {
    WorldCheck check(scene_->world, scene_->sim, redrive_ && redrive_->IsDone());
    for (const store::Record& record : scene_->Items())
      check.Item(scene_->Body(record), ledger_->IsUnlucky(record.key));
    if (scene_->tables) check.Rows(scene_->tables->rows);
    if (scene_->documents) check.Documents(scene_->documents->indexes);
    const std::set<std::string> letters = LettersInFile();
    check.Letters(letters);
    for (const std::string& letter : acknowledged_) {
      if (!letters.contains(letter))
        scene_->sim.Violate("L", "the letter of " + letter + " is lost");
    }
  }

 private:
  void MakeSink(Random& random) {
    Simulation& sim = scene_->sim;
    if (random.OneIn(2)) {
      scene_->tables = std::make_unique<TableTarget>(sim, ledger_->SinkEvents());
    } else {
      scene_->documents = std::make_unique<DocumentTarget>(sim, ledger_->SinkEvents());
      scene_->world.LeaveEarlierVersion(sim, *scene_->documents);
    }
    if (random.OneIn(2)) {
      // Like most real sinks, which leave retrying to the worker.
      (scene_->tables ? scene_->tables->patient : scene_->documents->patient) = false;
    }
    if (random.OneIn(4)) scene_->Wire().AddHarshFaults();
    if (random.OneIn(6)) scene_->Wire().CutOff("worker0");
  }

  // A store that goes back forgets which letters were redriven.
  void AddRedrives(Random& random) {
    if (scene_->goes_back || !random.OneIn(4)) return;
    redrive_ = std::make_unique<WorkRedrive>(*scene_);
    for (int64_t i = random.Between(1, 2); i > 0; --i) {
      scene_->sim.AddProcess("redrive" + std::to_string(i), [this](Env& env, std::stop_token stop) {
        redrive_->Run(env, std::move(stop));
      });
    }
  }

  // Many workers, or few with several slots: a seed's cost grows with the total number of slots.
  void AddWorkers(Random& random) {
    Simulation& sim = scene_->sim;
    // Beside a poison item there is something to lose.
    const bool many = random.OneIn(2) && !scene_->world.HasPoison();
    const int64_t workers = random.Between(1, many ? 5 : 2);
    if (workers >= 3 && scene_->world.roots() == 1) sim.Sometimes("18 many workers, one item");
    for (int64_t i = 0; i < workers; ++i) {
      const std::string name = "worker" + std::to_string(i);
      const auto slots =
          static_cast<int>(many ? 1 : random.Between(scene_->world.HasPoison() ? 2 : 1, 3));
      sim.AddProcess(name, [this, name, slots](Env& env, std::stop_token stop) {
        RunWorkProcess(name, slots, *scene_, *ledger_, acknowledged_, env, std::move(stop));
      });
    }
  }

  // Whether an item that reads the shard is open, or none was begun yet.
  bool IsCopied(const std::string& collection, int shard) {
    bool begun = false;
    for (const store::Record& record : scene_->Items()) {
      const work::ItemBody& item = scene_->Body(record);
      const pipeline::Partition& partition = item.partition;
      if (partition.collection != collection || partition.shard != shard || partition.follows)
        continue;
      if (item.state == work::ItemBody::State::kOpen) return true;
      begun = true;
    }
    return !begun;
  }

  // Complete lines; readers recognise lines torn by a crash.
  std::set<std::string> LettersInFile() const {
    std::set<std::string> letters;
    std::istringstream file(scene_->files->Content(kLettersFile));
    for (std::string line; std::getline(file, line);) {
      const Json letter = Json::parse(line, nullptr, false);
      if (!letter.is_object()) {
        scene_->sim.Sometimes("a line of a letter is torn");
        continue;
      }
      letters.insert(TextIn(letter, "collection") + "/" + TextIn(letter, "id"));
    }
    return letters;
  }

  std::unique_ptr<WorkScene> scene_;
  std::unique_ptr<WorkLedger> ledger_;
  std::unique_ptr<WorkRedrive> redrive_;
  std::set<std::string> acknowledged_;  // letters that were flushed
};

// What must have happened in the course of many seeds.
std::vector<std::string> Covered() {
  return {"1 a worker pauses past its lease in the middle of a batch",
          "2 a worker pauses between its look at the lease and the write",
          "3 a delayed write arrives after all is done",
          "4 a worker's clock is an hour off",
          "5 the store's clock jumps back",
          "6 the store's clock jumps forward",
          "7 claim applied, response lost",
          "a claim request arrives again or late",
          "9 a renewal races a takeover",
          "10 a late renewal after the release",
          "11 a worker restarts under the same id",
          "12 complete: no reply, applied",
          "13 complete: no reply, not applied",
          "14 a crash in a hand-over or split is made up for",
          "15 two workers split the same item",
          "16 a poison item kills each holder",
          "17 asked to stop before the first checkpoint",
          "18 many workers, one item",
          "19 the store is down near the end of a lease",
          "20 the store takes no writes",
          "21 the connection is lost during COMMIT",
          "22 a failover loses acknowledged commits",
          "23 the store is restored from a backup",
          "24 only some changes of a request survive",
          "25 a bulk request is taken in part",
          "26 a stale read picks an item that is taken",
          "27 a late write of an earlier migration meets a deleted document",
          "28 the store throttles",
          "29 a corrupt source fails closed",
          "an item is split",
          "an item is handed over",
          "a worker halts loudly, and a new incarnation goes on",
          "a full disk takes a part of a letter",
          "a line of a letter is torn",
          "24 a loss of power takes back letters that were not synced",
          "73 a sync fails",
          "73 a loss of power takes back what a failed sync has not written",
          "a machine is suspended",
          "a call hangs",
          "a slot acquires what another of its worker has lost",
          "an item that may have killed its process starts alone",
          "17 asked to stop while nothing else goes wrong",
          "74 a run is stopped, for too many of its documents fail",
          "74 a holder notices at a checkpoint that its run is stopped",
          "77 letters are redriven",
          "77 a redrive goes on where another has ended",
          "76 a document changes while it is copied",
          "76 an item waits for those that it follows",
          "76 what was read earlier meets what was read later"};
}

}  // namespace

WorkloadInfo WorkWorkload() {
  return {
      .name = "work",
      .about = "workers share a migration: leases, checkpoints, splits, hand-overs, real pipelines",
      .create = []() -> std::unique_ptr<Workload> { return std::make_unique<WorkWorkloadImpl>(); },
      .sometimes = Covered()};
}

const std::vector<WorkloadInfo>& Workloads() {
  static const std::vector<WorkloadInfo> kWorkloads{WorkWorkload(), ReplicaWorkload(),
                                                    StatesWorkload(), PlanWorkload()};
  return kWorkloads;
}

}  // namespace muster::sim
