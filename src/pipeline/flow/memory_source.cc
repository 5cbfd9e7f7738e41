#include "pipeline/flow/memory_source.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace muster::pipeline {
namespace {

size_t NumberOf(std::string_view position) {
  size_t number = 0;
  std::from_chars(position.data(), position.data() + position.size(), number);
  return number;
}

}  // namespace

class MemorySource::MemoryReader final : public Reader {
 public:
  MemoryReader(const Contents& contents, Range range)
      : contents_(contents), next_(range.begin), end_(range.end) {}

  Result<std::optional<Document>> Next() override {
    if (next_ >= end_) return std::nullopt;
    if (const auto failure = contents_.failures.find(next_); failure != contents_.failures.end()) {
      return failure->second;
    }
    const Entry& entry = contents_.entries[next_++];
    position_ = PositionOf(next_);
    return Document{.id = entry.id,
                    .routing = entry.routing,
                    .body = entry.body,
                    .position = position_,
                    .defect = entry.defect};
  }

  Result<std::optional<std::string>> Split() override {
    if (end_ < next_ + 2) return std::nullopt;
    end_ = next_ + (end_ - next_) / 2;
    return PositionOf(end_);
  }

 private:
  const Contents& contents_;
  size_t next_;
  size_t end_;
  std::string position_;
};

void MemorySource::Add(const std::string& collection, Entry entry) {
  collections_[collection].entries.push_back(std::move(entry));
}

void MemorySource::FailAt(const std::string& collection, size_t number, Error error) {
  collections_[collection].failures.insert_or_assign(number, std::move(error));
}

std::string MemorySource::PositionOf(size_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%06zu", number);
  return text;
}

Result<std::vector<Collection>> MemorySource::Collections() {
  std::vector<Collection> all;
  for (const auto& [name, contents] : collections_) all.push_back({.name = name});
  return all;
}

Result<std::vector<Partition>> MemorySource::Partitions(const std::string& collection) {
  const auto found = collections_.find(collection);
  if (found == collections_.end()) return Error{Code::kNotFound, "no collection " + collection};
  const size_t documents = found->second.entries.size();
  std::vector<Partition> partitions;
  for (size_t begin = 0; begin < documents || partitions.empty(); begin += partition_documents_) {
    const size_t end = std::min(begin + partition_documents_, documents);
    partitions.push_back({.collection = collection,
                          .shard = static_cast<int>(partitions.size()),
                          .begin = begin == 0 ? "" : PositionOf(begin),
                          .end = end == documents ? "" : PositionOf(end),
                          .documents = static_cast<int64_t>(end - begin)});
  }
  return partitions;
}

MemorySource::Range MemorySource::RangeOf(const Partition& partition,
                                          const Contents& contents) const {
  return {.begin = partition.begin.empty() ? 0 : NumberOf(partition.begin),
          .end = partition.end.empty() ? contents.entries.size() : NumberOf(partition.end)};
}

Result<std::unique_ptr<Reader>> MemorySource::Read(const Partition& partition,
                                                   const std::string& position, std::stop_token) {
  const auto found = collections_.find(partition.collection);
  if (found == collections_.end()) {
    return Error{Code::kNotFound, "no collection " + partition.collection};
  }
  Range range = RangeOf(partition, found->second);
  if (!position.empty()) range.begin = NumberOf(position);
  return std::make_unique<MemoryReader>(found->second, range);
}

std::optional<double> MemorySource::FractionBefore(const Partition& partition,
                                                   const std::string& position) {
  const auto found = collections_.find(partition.collection);
  if (found == collections_.end()) return std::nullopt;
  const Range range = RangeOf(partition, found->second);
  if (range.end <= range.begin) return 1.0;
  const size_t at = position.empty() ? range.begin : NumberOf(position);
  return static_cast<double>(at - range.begin) / static_cast<double>(range.end - range.begin);
}

}  // namespace muster::pipeline
