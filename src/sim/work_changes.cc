#include "sim/work_changes.h"

#include "pipeline/pipeline.h"

namespace muster::sim {
namespace {

constexpr char kPrefix[] = "change-";

std::string PositionOf(int64_t change) {
  return kPrefix + pipeline::MemorySource::PositionOf(static_cast<size_t>(change));
}

int64_t ChangeAt(const std::string& position) {
  return position.empty() ? 0 : std::stoll(position.substr(sizeof kPrefix - 1));
}

// From one point in time: a document that keeps changing would never end.
class ChangesReader final : public pipeline::Reader {
 public:
  struct Changed {
    std::string id;
    std::string body;
  };

  explicit ChangesReader(std::map<int64_t, Changed> changed)
      : changed_(std::move(changed)), next_(changed_.begin()) {}

  Result<std::optional<pipeline::Document>> Next() override {
    if (next_ == changed_.end()) return std::nullopt;
    const auto& [change, document] = *next_++;
    position_ = PositionOf(change);
    return pipeline::Document{.id = document.id,
                              .routing = {},
                              .body = document.body,
                              .position = position_,
                              .defect = {}};
  }

 private:
  const std::map<int64_t, Changed> changed_;  // by last change
  std::map<int64_t, Changed>::const_iterator next_;
  std::string position_;
};

}  // namespace

void WorkChanges::Change(const std::string& collection, size_t number) {
  Document& document = documents_[{collection, number}];
  ++document.revision;
  document.last_change = ++changes_[collection];
}

std::string WorkChanges::BodyOf(const std::string& collection, size_t number) const {
  const auto found = documents_.find({collection, number});
  const std::string revision =
      found == documents_.end() ? "" : ",\"r\":" + std::to_string(found->second.revision);
  return "{\"n\":" + std::to_string(number) + revision + "}";
}

pipeline::Partition WorkChanges::Follower(const std::string& collection, int shard) {
  return {.collection = collection, .shard = shard, .begin = PositionOf(0), .follows = true};
}

std::unique_ptr<pipeline::Reader> WorkChanges::Read(const std::string& collection, size_t begin,
                                                    size_t end, const std::vector<std::string>& ids,
                                                    const std::string& position) const {
  const int64_t after = ChangeAt(position);
  std::map<int64_t, ChangesReader::Changed> changed;
  for (size_t number = begin; number < end; ++number) {
    const auto found = documents_.find({collection, number});
    if (found == documents_.end() || found->second.last_change <= after) continue;
    changed[found->second.last_change] = {ids[number], BodyOf(collection, number)};
  }
  return std::make_unique<ChangesReader>(std::move(changed));
}

}  // namespace muster::sim
