#include "replica/memory_read_model.h"
#include "replica/read_model.h"
#include "store/store.h"

namespace muster::replica {

Result<std::unique_ptr<ReadModel>> OpenReadModel(const std::string& text, Env& /*env*/,
                                                 const CallLimits& limits) {
  auto url = store::ParseStoreUrl(text);
  if (!url) return url.error().Within("read model");
  switch (url->backend) {
    case store::StoreUrl::Backend::kMemory:
      return std::make_unique<MemoryReadModel>();
    case store::StoreUrl::Backend::kSqlite:
      return OpenSqliteReadModel(url->target, url->space);
    case store::StoreUrl::Backend::kPostgres:
      return OpenPostgresReadModel(url->target, url->space, limits);
    default:
      break;
  }
  return Error{Code::kInvalid, "this kind of store holds no read models",
               "use sqlite:PATH or postgresql://USER@HOST/DATABASE"};
}

}  // namespace muster::replica
