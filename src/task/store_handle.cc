#include "task/store_handle.h"

#include "core/mutex.h"

namespace muster::task {

struct StoreHandle::Shared {
  explicit Shared(std::string of) : url(std::move(of)) {}
  explicit Shared(store::Store& store) : open(&store) {}

  const std::string url;
  Mutex mutex;
  std::unique_ptr<store::Store> own GUARDED_BY(mutex);
  store::Store* open GUARDED_BY(mutex) = nullptr;
};

StoreHandle::StoreHandle(store::Store& store) : shared_(std::make_shared<Shared>(store)) {}

StoreHandle::StoreHandle(std::string url) : shared_(std::make_shared<Shared>(std::move(url))) {}

Result<store::Store*> StoreHandle::Open(Env& env) const {
  const MutexLock lock(shared_->mutex);
  if (shared_->open == nullptr) {
    MUSTER_ASSIGN(shared_->own, store::OpenStore(shared_->url, env));
    shared_->open = shared_->own.get();
  }
  return shared_->open;
}

}  // namespace muster::task
