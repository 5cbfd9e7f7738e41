#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/work.h"
#include "sim/document_sink.h"
#include "sim/faulty_store.h"
#include "sim/parsed.h"
#include "sim/sim_files.h"
#include "sim/table_sink.h"
#include "sim/work_world.h"
#include "work/work.h"

namespace muster::sim {

inline constexpr nanoseconds kLongestLoss = std::chrono::seconds(100);  // since the last backup

// One simulated run: its services, how they are used, and what happened to the store.
struct WorkScene {
  explicit WorkScene(Simulation& simulation) : sim(simulation) {}

  Simulation& sim;
  WorkWorld world;
  std::unique_ptr<FaultyStore> store;
  std::unique_ptr<SimFiles> files;
  std::unique_ptr<TableTarget> tables;  // one of the two
  std::unique_ptr<DocumentTarget> documents;
  work::WorkTerms terms;
  nanoseconds pace{0};
  bool buffered = false;
  bool restored = false;
  bool goes_back = false;
  bool went_back = false;
  bool is_finished = false;                             // a worker has ended since all is done
  bool new_incarnation = false;                         // the next worker to start begins one
  std::optional<work::FailureLimit> max_failures = {};  // of workers that start

  // The run as it is stored, if any.
  std::optional<work::RunBody> Run() {
    const auto stored = store->Truth().Get(work::kRunKind, "run").value();
    if (!stored) return std::nullopt;
    return work::RunBody::FromJson(stored->body).value();
  }

  void Cure() { (tables ? tables->cured : documents->cured) = true; }
  std::unique_ptr<pipeline::Sink> NewSink(Env& env) {
    if (tables) return std::make_unique<TableSink>(*tables, env, pace);
    return std::make_unique<DocumentSink>(*documents, env, pace, buffered);
  }

  FaultyWire& Wire() { return tables ? tables->wire : documents->wire; }
  WallTime StoreNow() { return store->Truth().Now().value(); }
  std::optional<store::Record> Stored(const std::string& key) {
    return store->Truth().Get(work::kWorkKind, key).value();
  }
  std::vector<store::Record> Items() {
    return store->Truth().Scan(work::kWorkKind, "", "", store::kMaxBatch).value();
  }

  const work::ItemBody& Body(const store::Record& record) { return bodies[record.body]; }
  bool IsDone(const store::Record& record) {
    return Body(record).state == work::ItemBody::State::kDone;
  }
  // Whether `wanted` names a successor that `stored` does not.
  bool GivesAway(const store::Record& stored, const store::Record& wanted) {
    const auto& known = Body(stored).progress.former_ends;
    const auto& named = Body(wanted).progress.former_ends;
    return named.size() > known.size() || !std::equal(named.begin(), named.end(), known.begin());
  }

  Parsed<work::ItemBody> bodies{
      [](const std::string& body) { return work::ItemBody::FromJson(body).value(); }};
};

}  // namespace muster::sim
