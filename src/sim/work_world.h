#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/work.h"
#include "pipeline/pipeline.h"
#include "sim/document_sink.h"
#include "sim/random.h"
#include "sim/work_changes.h"
#include "work/work.h"

namespace muster::sim {

// What is migrated in one simulation: a few small collections, in which a document may be one that
// the sink never accepts, one that kills its reader, or one that cannot be read.
class WorkWorld {
 public:
  void Make(Random& random);
  // The product's terms, those of all simulations before there were others, or any.
  work::WorkTerms Terms(Random& random, Random& terms) const;

  // An earlier migration has left documents in the target, some of which have been deleted since,
  // and some of its writes are still in flight.
  void LeaveEarlierVersion(Simulation& sim, DocumentTarget& target);

  // Documents change as long as the first items of their shard, those that read it all, are not
  // done: `is_copied` says whether that is so.
  using IsCopied = std::function<bool(const std::string& collection, int shard)>;
  void ChangeDocuments(Simulation& sim, const IsCopied& is_copied);
  bool changes() const { return changes_.has_value(); }

  std::vector<pipeline::Partition> Partitions(const std::string& collection);
  std::unique_ptr<pipeline::Reader> ReadChanges(const pipeline::Partition& partition,
                                                const std::string& position);
  // The content of a document now.
  std::string BodyOf(const std::string& collection, size_t number) const;
  // The documents of a shard: the first, and that behind the last.
  std::pair<size_t, size_t> Shard(const std::string& collection, int shard) const;

  pipeline::MemorySource& source() { return *source_; }
  size_t roots() const { return roots_; }
  pipeline::BatchLimits limits() const { return {.max_docs = batch_}; }

  struct Document {
    std::string id;
    bool refused = false;
  };
  const std::map<std::string, std::vector<Document>>& collections() const { return collections_; }
  static constexpr char kDamaged[] = "the file is damaged";
  bool Bad(const std::string& collection, size_t number) const {
    return bad_collection_ == collection && bad_number_ == number;
  }
  bool HasPoison() const { return poison_; }
  bool Poison(const std::string& id) const { return poison_ && bad_id_ == id; }
  void CountPoisonDeath() { ++poison_deaths_; }
  int poison_deaths() const { return poison_deaths_; }
  const std::set<std::string>& deleted() const { return deleted_; }

 private:
  std::unique_ptr<pipeline::MemorySource> source_;
  std::map<std::string, std::vector<Document>> collections_;
  std::optional<WorkChanges> changes_;
  size_t shard_size_ = 1;
  size_t roots_ = 0;
  size_t batch_ = 1;
  std::string bad_collection_;
  size_t bad_number_ = 0;
  std::string bad_id_;
  bool poison_ = false;
  int poison_deaths_ = 0;
  std::set<std::string> deleted_;  // ids that must not come back
};

// One process's view of the world's source.
class WorldSource final : public pipeline::SourceWrapper {
 public:
  WorldSource(WorkWorld& world, Simulation& sim)
      : SourceWrapper(world.source()), world_(world), sim_(sim) {}

  Result<std::vector<pipeline::Partition>> Partitions(const std::string& collection) override {
    return world_.Partitions(collection);
  }
  Result<std::unique_ptr<pipeline::Reader>> Read(const pipeline::Partition& partition,
                                                 const std::string& position,
                                                 std::stop_token stop) override;
  std::optional<double> FractionBefore(const pipeline::Partition& partition,
                                       const std::string& position) override {
    if (partition.follows) return std::nullopt;
    return SourceWrapper::FractionBefore(partition, position);
  }

 private:
  WorkWorld& world_;
  Simulation& sim_;
};

// Compares the end of a simulation with the expectation.
class WorldCheck {
 public:
  // `redriven`: what was refused at first has been written since.
  WorldCheck(const WorkWorld& world, Simulation& sim, bool redriven)
      : world_(world), sim_(sim), redriven_(redriven) {}

  // All items first: together they must cover every collection exactly once. For an `unlucky` one
  // the reason for its quarantine is known.
  void Item(const work::ItemBody& body, bool unlucky);
  void Rows(const std::map<std::string, std::vector<std::string>>& rows);
  void Documents(
      const std::map<std::string, std::map<std::string, DocumentTarget::Stored>>& indexes);
  void Letters(const std::set<std::string>& letters);

 private:
  void Follower(const work::ItemBody& body, bool unlucky);
  void Coverage();

  const WorkWorld& world_;
  Simulation& sim_;
  const bool redriven_;
  struct Range {
    size_t end = 0;
    bool quarantined = false;
  };
  std::map<std::string, std::map<size_t, Range>> ranges_;  // by collection and begin
  std::map<std::string, std::set<size_t>> excused_;        // documents of quarantined items
};

}  // namespace muster::sim
