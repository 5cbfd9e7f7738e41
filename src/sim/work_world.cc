#include "sim/work_world.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

constexpr nanoseconds kLongestDelay = std::chrono::minutes(4);
constexpr nanoseconds kFirstMoments = seconds(20);
constexpr int64_t kMostChanges = 30;

size_t NumberOf(const std::string& position, size_t otherwise) {
  return position.empty() ? otherwise : std::stoul(position);
}

// Kills its process at a poison document.
class WorldReader final : public pipeline::ReaderWrapper {
 public:
  WorldReader(WorkWorld& world, Simulation& sim, const pipeline::Partition& partition,
              std::unique_ptr<pipeline::Reader> reader, std::stop_token stop)
      : ReaderWrapper(std::move(reader)),
        world_(world),
        sim_(sim),
        collection_(partition.collection),
        follows_(partition.follows),
        stop_(std::move(stop)) {}

  Result<std::optional<pipeline::Document>> Next() override {
    MaybeHang(sim_, stop_);
    auto document = ReaderWrapper::Next();
    if (document && *document && world_.Poison(std::string((*document)->id))) {
      world_.CountPoisonDeath();
      sim_.Crash("poison");
    }
    if (document && *document && world_.changes() && !follows_) {
      body_ = world_.BodyOf(collection_, NumberOf(std::string((*document)->position), 1) - 1);
      (*document)->body = body_;
    }
    return document;
  }

 private:
  WorkWorld& world_;
  Simulation& sim_;
  const std::string collection_;
  const bool follows_;
  const std::stop_token stop_;
  std::string body_;  // of the last document
};

}  // namespace

void WorkWorld::Make(Random& random) {
  shard_size_ = static_cast<size_t>(random.Between(4, 40));
  source_ = std::make_unique<pipeline::MemorySource>(shard_size_);
  batch_ = static_cast<size_t>(random.Between(1, 6));
  const int64_t collections = random.Between(1, 2);
  for (int64_t i = 0; i < collections; ++i) {
    const std::string name = "index__" + std::to_string(i);
    const int64_t documents = random.Between(1, 40);
    for (int64_t number = 0; number < documents; ++number) {
      const bool refused = random.OneIn(25);
      Document document{.id = std::to_string(number) + (refused ? "!" : ""), .refused = refused};
      source_->Add(name, {.id = document.id, .body = BodyOf(name, static_cast<size_t>(number))});
      collections_[name].push_back(std::move(document));
    }
  }
  if (random.OneIn(4)) {
    const auto& [name, documents] = *collections_.begin();
    bad_collection_ = name;
    bad_number_ = random.Next() % documents.size();
    bad_id_ = documents[bad_number_].id;
    poison_ = random.OneIn(2) && !collections_.contains("index__1");
    if (!poison_) source_->FailAt(name, bad_number_, Error{Code::kCorrupt, kDamaged});
  }
  for (const auto& [name, documents] : collections_) {
    roots_ += source_->Partitions(name)->size();
  }
}

work::WorkTerms WorkWorld::Terms(Random& random, Random& terms) const {
  if (random.OneIn(4)) return {};
  constexpr milliseconds kIntervals[] = {milliseconds(0), milliseconds(1'000), milliseconds(4'000)};
  // An idle worker polls, and the simulation pays for every poll.
  constexpr milliseconds kIdleWaits[] = {milliseconds(2'000), milliseconds(15'000),
                                         milliseconds(40'000)};
  constexpr milliseconds kHolds[] = {milliseconds(0), milliseconds(5'000), milliseconds(30'000)};
  work::WorkTerms drawn{.lease = seconds(30),
                        .max_lease = seconds(120),
                        .checkpoint_interval = kIntervals[random.Between(0, 2)],
                        .max_hold = kHolds[random.Between(0, 2)],
                        .retry_delay = seconds(1),
                        .idle_wait = kIdleWaits[random.Between(0, 2)],
                        .max_attempts = 6};
  if (terms.OneIn(2)) return drawn;
  drawn.lease = seconds(terms.Between(15, 90));  // a call takes up to five seconds
  drawn.max_lease = drawn.lease * terms.Between(1, 8);
  drawn.retry_delay = milliseconds(terms.Between(100, 10'000));
  drawn.max_attempts = static_cast<int>(terms.Between(3, 10));
  return drawn;
}

void WorkWorld::ChangeDocuments(Simulation& sim, const IsCopied& is_copied) {
  Random& random = sim.terms();
  if (!bad_collection_.empty() || !random.OneIn(2)) return;
  changes_.emplace();
  for (int64_t left = random.Between(1, kMostChanges); left > 0; --left) {
    auto collection = collections_.begin();
    std::advance(collection, random.Between(0, std::ssize(collections_) - 1));
    const auto number = static_cast<size_t>(random.Between(0, std::ssize(collection->second) - 1));
    const nanoseconds delay = random.UpTo(random.OneIn(2) ? kLongestDelay : kFirstMoments);
    if (collection->second[number].refused) continue;
    sim.After(delay, [this, &sim, is_copied, number, name = collection->first] {
      if (!is_copied(name, static_cast<int>(number / shard_size_))) return;
      sim.Note("document " + std::to_string(number) + " of " + name + " changes");
      sim.Sometimes("76 a document changes while it is copied");
      changes_->Change(name, number);
    });
  }
}

std::string WorkWorld::BodyOf(const std::string& collection, size_t number) const {
  return (changes_ ? *changes_ : WorkChanges()).BodyOf(collection, number);
}

std::pair<size_t, size_t> WorkWorld::Shard(const std::string& collection, int shard) const {
  const size_t begin = static_cast<size_t>(shard) * shard_size_;
  return {begin, std::min(begin + shard_size_, collections_.at(collection).size())};
}

std::vector<pipeline::Partition> WorkWorld::Partitions(const std::string& collection) {
  std::vector<pipeline::Partition> partitions = source_->Partitions(collection).value();
  const int shards = static_cast<int>(partitions.size());
  for (int shard = 0; changes_ && shard < shards; ++shard)
    partitions.push_back(WorkChanges::Follower(collection, shard));
  return partitions;
}

std::unique_ptr<pipeline::Reader> WorkWorld::ReadChanges(const pipeline::Partition& partition,
                                                         const std::string& position) {
  std::vector<std::string> ids;
  for (const Document& document : collections_.at(partition.collection)) ids.push_back(document.id);
  const auto [begin, end] = Shard(partition.collection, partition.shard);
  return changes_->Read(partition.collection, begin, end, ids, position);
}

void WorkWorld::LeaveEarlierVersion(Simulation& sim, DocumentTarget& target) {
  constexpr int64_t kEarlier = DocumentTarget::kVersion - 1;
  const std::string name = collections_.begin()->first;
  for (int i = 0; i < 3; ++i) {
    const std::string id = i == 0 ? "0" : "gone" + std::to_string(i);
    const DocumentTarget::Entry entry{.id = id, .body = "{\"old\":true}"};
    target.Take(name, entry, kEarlier);
    if (i > 0) {
      deleted_.insert(id);
      target.indexes[name][id] = {.version = DocumentTarget::kVersion, .deleted = true, .body = {}};
    }
    sim.After(sim.random().UpTo(kLongestDelay), [&sim, &target, name, entry] {
      if (!target.Take(name, entry, kEarlier) && target.indexes[name][entry.id].deleted) {
        sim.Sometimes("27 a late write of an earlier migration meets a deleted document");
      }
    });
  }
}

Result<std::unique_ptr<pipeline::Reader>> WorldSource::Read(const pipeline::Partition& partition,
                                                            const std::string& position,
                                                            std::stop_token stop) {
  sim_.Pass(sim_.random().UpTo<int64_t, std::nano>(std::chrono::milliseconds(20)));
  std::unique_ptr<pipeline::Reader> reader;
  if (partition.follows) {
    reader = world_.ReadChanges(partition, position.empty() ? partition.begin : position);
  } else {
    MUSTER_ASSIGN(reader, world_.source().Read(partition, position, stop));
  }
  return std::make_unique<WorldReader>(world_, sim_, partition, std::move(reader), stop);
}

// What changed of a shard that is not followed to its end may be missing.
void WorldCheck::Follower(const work::ItemBody& body, bool unlucky) {
  const std::string name = work::NameOf(body.partition);
  if (body.state == work::ItemBody::State::kOpen) sim_.Violate("V", name + " was left open");
  const pipeline::Counts& counts = body.progress.counts;
  if (counts.read != counts.written + counts.skipped)
    sim_.Violate("L", name + ": read is not written + skipped");
  if (body.state != work::ItemBody::State::kQuarantined) return;
  if (!unlucky) sim_.Violate("B", name + " was quarantined without a reason: " + body.error);
  const auto [begin, end] = world_.Shard(body.partition.collection, body.partition.shard);
  for (size_t number = begin; number < end; ++number)
    excused_[body.partition.collection].insert(number);
}

void WorldCheck::Item(const work::ItemBody& body, bool unlucky) {
  if (body.partition.follows) return Follower(body, unlucky);
  const std::string name = work::NameOf(body.partition);
  const std::string& collection = body.partition.collection;
  const size_t size = world_.collections().at(collection).size();
  const size_t begin = NumberOf(body.partition.begin, 0);
  const size_t end = NumberOf(body.progress.end, size);
  const bool quarantined = body.state == work::ItemBody::State::kQuarantined;
  if (body.state == work::ItemBody::State::kOpen) sim_.Violate("V", name + " was left open");
  if (!ranges_[collection].emplace(begin, Range{end, quarantined}).second) {
    sim_.Violate("L", name + " begins where another item does");
  }
  const pipeline::Counts& counts = body.progress.counts;
  if (!quarantined && counts.read != static_cast<int64_t>(end - begin)) {
    sim_.Violate("L", name + " is done with " + std::to_string(counts.read) + " of " +
                          std::to_string(end - begin) + " documents read");
  }
  if (counts.read != counts.written + counts.skipped + counts.failed) {
    sim_.Violate("L", name + ": read is not written + skipped + failed");
  }
  if (!quarantined) return;
  bool bad = false;
  for (size_t number = begin; number < end; ++number) {
    bad |= world_.Bad(collection, number);
    excused_[collection].insert(number);
  }
  if (!bad && !unlucky)
    sim_.Violate("B", name + " was quarantined without a reason: " + body.error);
}

void WorldCheck::Coverage() {
  for (const auto& [collection, documents] : world_.collections()) {
    size_t at = 0;
    for (const auto& [begin, range] : ranges_[collection]) {
      if (begin != at) {
        sim_.Violate("L", collection + ": items " + (begin < at ? "overlap" : "leave a gap") +
                              " at " + std::to_string(at));
      }
      at = range.end;
    }
    if (at != documents.size()) sim_.Violate("L", collection + ": items end too early");
  }
}

void WorldCheck::Rows(const std::map<std::string, std::vector<std::string>>& rows) {
  Coverage();
  for (const auto& [collection, documents] : world_.collections()) {
    std::map<std::string, int> found;
    if (const auto stored = rows.find(collection); stored != rows.end()) {
      for (const std::string& id : stored->second) ++found[id];
    }
    for (size_t number = 0; number < documents.size(); ++number) {
      const auto& document = documents[number];
      const int times = found[document.id];
      found.erase(document.id);
      if (times > 1) sim_.Violate("L", collection + "/" + document.id + " is there twice");
      if (times == 0 && (!document.refused || redriven_) &&
          !excused_[collection].contains(number)) {
        sim_.Violate("L", collection + "/" + document.id + " is lost");
      }
    }
    if (!found.empty()) sim_.Violate("L", collection + " has rows from nowhere");
  }
}

void WorldCheck::Documents(
    const std::map<std::string, std::map<std::string, DocumentTarget::Stored>>& indexes) {
  Coverage();
  for (const auto& [collection, documents] : world_.collections()) {
    const auto index = indexes.find(collection);
    for (size_t number = 0; number < documents.size(); ++number) {
      const auto& document = documents[number];
      if ((document.refused && !redriven_) || excused_[collection].contains(number)) continue;
      const bool there = index != indexes.end() && index->second.contains(document.id) &&
                         index->second.at(document.id).body == world_.BodyOf(collection, number);
      if (!there) sim_.Violate("L", collection + "/" + document.id + " is lost or old");
    }
  }
  for (const auto& [collection, index] : indexes) {
    for (const auto& [id, stored] : index) {
      if (world_.deleted().contains(id) && !stored.deleted) {
        sim_.Violate("L", collection + "/" + id + " has come back");
      }
    }
  }
}

void WorldCheck::Letters(const std::set<std::string>& letters) {
  for (const auto& [collection, documents] : world_.collections()) {
    for (size_t number = 0; number < documents.size(); ++number) {
      const auto& document = documents[number];
      if (document.refused && !excused_[collection].contains(number) &&
          !letters.contains(collection + "/" + document.id)) {
        sim_.Violate("L", collection + "/" + document.id + " was refused without a trace");
      }
    }
  }
}

}  // namespace muster::sim
