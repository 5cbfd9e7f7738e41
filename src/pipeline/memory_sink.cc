#include "pipeline/memory_sink.h"

namespace muster {
namespace {

Error LeaseLost(const std::string& item) {
  return {Code::kLeaseLost, "a later holder has opened " + item};
}

}  // namespace

class MemorySink::MemoryWriter final : public Writer {
 public:
  MemoryWriter(MemorySink& sink, std::string collection, std::string item, int64_t epoch)
      : sink_(sink), collection_(std::move(collection)), item_(std::move(item)), epoch_(epoch) {
    const Item& entry = sink_.items_[item_];
    known_ = entry.progress;
    sealed_ = entry.sealed;
  }

  const std::optional<Progress>& Known() const override { return known_; }
  bool Sealed() const override { return sealed_; }

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience&) override {
    if (sink_.fail) MUSTER_TRY(sink_.fail(batch.documents.size()));
    std::lock_guard lock(sink_.mutex_);
    MUSTER_ASSIGN(Item* const item, Mine());
    if (item->sealed) return LeaseLost(item_);
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
    item->progress = after;
    item->progress->counts.written -= static_cast<int64_t>(refused.size());
    item->progress->counts.failed += static_cast<int64_t>(refused.size());
    return refused;
  }

  Result<std::optional<Progress>> Seal() override {
    std::lock_guard lock(sink_.mutex_);
    MUSTER_ASSIGN(Item* const item, Mine());
    item->sealed = true;
    return item->progress;
  }

  Status Finish() override {
    std::lock_guard lock(sink_.mutex_);
    MUSTER_ASSIGN(Item* const item, Mine());
    item->finished = true;
    return {};
  }

 private:
  Result<Item*> Mine() {
    Item& item = sink_.items_[item_];
    if (item.epoch != epoch_) return LeaseLost(item_);
    return &item;
  }

  MemorySink& sink_;
  const std::string collection_;
  const std::string item_;
  const int64_t epoch_;
  std::optional<Progress> known_;
  bool sealed_ = false;
};

std::vector<MemorySink::Entry> MemorySink::Documents(const std::string& collection) const {
  std::lock_guard lock(mutex_);
  const auto found = collections_.find(collection);
  return found == collections_.end() ? std::vector<Entry>() : found->second.documents;
}

std::vector<size_t> MemorySink::BatchSizes(const std::string& collection) const {
  std::lock_guard lock(mutex_);
  const auto found = collections_.find(collection);
  return found == collections_.end() ? std::vector<size_t>() : found->second.batch_sizes;
}

std::set<std::string> MemorySink::FinishedItems() const {
  std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, item] : items_) {
    if (item.finished) names.insert(name.substr(name.find('/') + 1));
  }
  return names;
}

std::set<std::string> MemorySink::FinishedCollections() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

Result<std::vector<TargetChange>> MemorySink::Prepare(const Collection& collection, bool evaluate) {
  std::lock_guard lock(mutex_);
  if (collections_.contains(collection.name)) return std::vector<TargetChange>();
  if (!evaluate) collections_[collection.name];
  return std::vector<TargetChange>{{collection.name, "create " + collection.name}};
}

Result<std::unique_ptr<Writer>> MemorySink::Open(const std::string& collection,
                                                 const Fence& fence) {
  std::lock_guard lock(mutex_);
  const std::string name = fence.run + "/" + fence.item;
  Item& item = items_[name];
  if (!item.incarnation.empty() && item.incarnation != fence.incarnation) {
    if (!fence.adopts) {
      return Error{Code::kConflict, name + " was written by another incarnation of the run"};
    }
    item.epoch = 0;
  }
  if (fence.epoch < item.epoch) return LeaseLost(name);
  item.incarnation = fence.incarnation;
  item.epoch = fence.epoch;
  return std::make_unique<MemoryWriter>(*this, collection, name, fence.epoch);
}

Status MemorySink::Finish(const std::string& collection) {
  std::lock_guard lock(mutex_);
  finished_.insert(collection);
  return {};
}

}  // namespace muster
