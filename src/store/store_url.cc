#include "store/store_url.h"

#include <algorithm>

#include "core/url.h"
#include "sql/postgres_uri.h"
#include "store/opensearch/opensearch_url.h"

namespace muster::store {
namespace {

constexpr std::string_view kDefaultNamespace = "muster";
constexpr std::string_view kOwnParameters[] = {"namespace"};
constexpr size_t kMaxNamespaceBytes = 40;  // leaves room in PostgreSQL's 63-byte names

Error Invalid(std::string message, std::string hint) {
  return Error{Code::kInvalid, std::move(message), std::move(hint)};
}

// The namespace becomes part of table names, so only plain characters may pass.
Result<std::string> NamespaceOf(const Url& url) {
  std::string space = url.Param("namespace").value_or(std::string(kDefaultNamespace));
  const bool plain = std::all_of(space.begin(), space.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (space.empty() || space.size() > kMaxNamespaceBytes || !plain || space[0] < 'a') {
    return Invalid("namespace '" + space + "' is not a plain name",
                   "use up to " + std::to_string(kMaxNamespaceBytes) +
                       " lower-case letters, digits and underscores, a letter first");
  }
  return space;
}

Status OnlyNamespace(const Url& url) {
  for (const auto& [name, value] : url.query) {
    if (name == "namespace") continue;
    return Invalid("store URL has an unknown parameter '" + name + "'",
                   "the only one for this scheme is ?namespace=NAME");
  }
  return {};
}

Result<std::string> SqlitePath(const Url& url) {
  MUSTER_TRY(OnlyNamespace(url));
  if (!url.host.empty()) {
    return Invalid("store URL names a host, but a SQLite store is a file",
                   "write sqlite:PATH, without the double slash");
  }
  if (url.path.empty()) return Invalid("store URL names no file", "write sqlite:PATH");
  return url.path;
}

}  // namespace

Result<StoreUrl> ParseStoreUrl(const std::string& text) {
  auto url = ParseUrl(text);
  if (!url) return url.error().Within("store URL");
  StoreUrl store;
  MUSTER_ASSIGN(store.space, NamespaceOf(*url));
  if (url->scheme == "memory") {
    MUSTER_TRY(OnlyNamespace(*url));
  } else if (url->scheme == "sqlite") {
    store.backend = StoreUrl::Backend::kSqlite;
    MUSTER_ASSIGN(store.target, SqlitePath(*url));
  } else if (url->scheme == "postgresql" || url->scheme == "postgres") {
    store.backend = StoreUrl::Backend::kPostgres;
    MUSTER_ASSIGN(store.target, sql::PostgresUri(*url, "store URL", kOwnParameters));
  } else if (url->scheme == "opensearch+https" || url->scheme == "opensearch+http") {
    store.backend = StoreUrl::Backend::kOpenSearch;
    MUSTER_ASSIGN(store.opensearch, OpenSearchEndpointOf(*url));
  } else if (url->scheme == "dynamodb") {
    store.backend = StoreUrl::Backend::kDynamoDb;
    MUSTER_ASSIGN(store.dynamodb, ParseDynamoDbPlace(*url));
  } else {
    return Invalid("store URL has the unknown scheme '" + url->scheme + "'",
                   "use memory:, sqlite:PATH, postgresql://USER@HOST/DATABASE, "
                   "opensearch+https://HOST or dynamodb://REGION/TABLE");
  }
  return store;
}

}  // namespace muster::store
