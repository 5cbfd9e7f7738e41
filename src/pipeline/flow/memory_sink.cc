#include "pipeline/flow/memory_sink.h"

#include "core/mutex.h"

namespace muster::pipeline {
namespace {

constexpr char kPlace[] = "memory";

}  // namespace

class MemorySink::MemoryWriter final : public Writer {
 public:
  MemoryWriter(MemorySink& sink, std::string collection, Fence fence, Item& item)
      : sink_(sink),
        collection_(std::move(collection)),
        fence_(std::move(fence)),
        item_(item),
        known_(item.progress.value_or(Progress{})),
        sealed_(item.fence->sealed) {}

  const std::optional<Progress>& Known() const override { return known_; }
  bool Sealed() const override { return sealed_; }

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience&) override {
    if (sink_.fail) MUSTER_TRY(sink_.fail(batch.documents.size()));
    const MutexLock lock(sink_.mutex_);
    MUSTER_TRY(CheckWrite(fence_, *item_.fence, kPlace));
    std::vector<Refused> refused;
    Contents& contents = sink_.collections_[collection_];
    for (size_t i = 0; i < batch.documents.size(); ++i) {
      const Document& document = batch.documents[i];
      std::string reason = sink_.refuse ? sink_.refuse(document) : "";
      if (reason.empty() && document.deleted) {
        std::erase_if(contents.documents, [&](const Entry& it) { return it.id == document.id; });
      } else if (reason.empty()) {
        contents.documents.push_back({std::string(document.id), std::string(document.body)});
      } else {
        refused.push_back({i, std::move(reason)});
      }
    }
    contents.batch_sizes.push_back(batch.documents.size());
    item_.progress = WithRefused(after, refused);
    return refused;
  }

  Result<std::optional<Progress>> Seal() override {
    const MutexLock lock(sink_.mutex_);
    MUSTER_TRY(CheckMine());
    item_.fence->sealed = true;
    return item_.progress.value_or(Progress{});
  }

  Status Finish() override {
    const MutexLock lock(sink_.mutex_);
    MUSTER_TRY(CheckMine());
    item_.finished = true;
    return {};
  }

 private:
  // Ignores the seal.
  Status CheckMine() const REQUIRES(sink_.mutex_) {
    StoredFence stored = *item_.fence;
    stored.sealed = false;
    return CheckWrite(fence_, stored, kPlace);
  }

  MemorySink& sink_;
  const std::string collection_;
  const Fence fence_;
  Item& item_;  // guarded by the sink's mutex
  std::optional<Progress> known_;
  const bool sealed_;
};

std::vector<MemorySink::Entry> MemorySink::Documents(const std::string& collection) const {
  const MutexLock lock(mutex_);
  const auto found = collections_.find(collection);
  return found == collections_.end() ? std::vector<Entry>() : found->second.documents;
}

std::vector<size_t> MemorySink::BatchSizes(const std::string& collection) const {
  const MutexLock lock(mutex_);
  const auto found = collections_.find(collection);
  return found == collections_.end() ? std::vector<size_t>() : found->second.batch_sizes;
}

std::set<std::string> MemorySink::FinishedItems() const {
  const MutexLock lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, item] : items_) {
    if (item.finished) names.insert(name.substr(name.find('/') + 1));
  }
  return names;
}

std::set<std::string> MemorySink::FinishedCollections() const {
  const MutexLock lock(mutex_);
  return finished_;
}

Result<std::vector<TargetChange>> MemorySink::Prepare(const Collection& collection, bool evaluate) {
  const MutexLock lock(mutex_);
  if (collections_.contains(collection.name)) return std::vector<TargetChange>();
  if (!evaluate) collections_[collection.name];
  return std::vector<TargetChange>{{collection.name, "create " + collection.name}};
}

Result<std::unique_ptr<Writer>> MemorySink::Open(const std::string& collection,
                                                 const Fence& fence) {
  if (fail_collection) MUSTER_TRY(fail_collection(collection));
  const MutexLock lock(mutex_);
  Item& item = items_[fence.run + "/" + fence.item];
  if (item.fence) MUSTER_TRY(CheckOpen(fence, *item.fence, kPlace));
  item.fence = StoredFence{.incarnation = fence.incarnation,
                           .epoch = fence.epoch,
                           .holder = fence.holder,
                           .sealed = item.fence && item.fence->sealed,
                           .progress = {}};
  return std::make_unique<MemoryWriter>(*this, collection, fence, item);
}

Status MemorySink::Finish(const std::string& collection) {
  const MutexLock lock(mutex_);
  finished_.insert(collection);
  return {};
}

}  // namespace muster::pipeline
