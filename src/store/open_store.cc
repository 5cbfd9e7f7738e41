#include "store/backends.h"
#include "store/store_url.h"

namespace muster::store {

Result<std::unique_ptr<Store>> OpenStore(const std::string& text, Env& env) {
  MUSTER_ASSIGN(const StoreUrl url, ParseStoreUrl(text));
  switch (url.backend) {
    case StoreUrl::Backend::kMemory:
      return NewMemoryStore(env);
    case StoreUrl::Backend::kSqlite:
      return OpenSqliteStore(url.target, url.space, env);
    case StoreUrl::Backend::kPostgres:
      return OpenPostgresStore(url.target, url.space, env);
    case StoreUrl::Backend::kDynamoDb:
      return OpenDynamoDbStore(url.dynamodb, url.space, env);
    case StoreUrl::Backend::kOpenSearch:
      return OpenOpenSearchStore(url.opensearch, url.space, env);
  }
  return Error{Code::kInternal, "store URL without a backend"};
}

}  // namespace muster::store
