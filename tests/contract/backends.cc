#include "contract/backends.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "store/backends.h"
#include "store/metered_store.h"
#include "store/store_wrapper.h"
#include "support/dynamodb_server.h"
#include "support/opensearch_server.h"
#include "support/postgres_server.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"

namespace muster::testing {
namespace {

std::unique_ptr<store::Store> OpenOrThrow(const std::string& url, Env& env) {
  auto store = store::OpenStore(url, env);
  if (!store) throw std::runtime_error(store.error().ToString());
  return *std::move(store);
}

class MemoryBackend final : public Backend {
 public:
  std::unique_ptr<store::Store> Open(const std::string& space, Env& /*env*/) override {
    auto& store = stores_[space];
    if (store == nullptr) store = store::NewMemoryStore(RealEnv());
    return std::make_unique<store::StoreWrapper>(*store);
  }

 private:
  std::map<std::string, std::unique_ptr<store::Store>> stores_;
};

// Metering must not change behaviour.
class MeteredBackend final : public Backend {
 public:
  std::unique_ptr<store::Store> Open(const std::string& space, Env& env) override {
    auto& store = stores_.emplace_back(inner_.Open(space, env));
    return std::make_unique<store::MeteredStore>(*store, metrics_, RealEnv());
  }

 private:
  MemoryBackend inner_;
  std::vector<std::unique_ptr<store::Store>> stores_;
  Metrics metrics_;
};

class SqliteBackend final : public Backend {
 public:
  std::unique_ptr<store::Store> Open(const std::string& space, Env& env) override {
    return OpenOrThrow(Url(space), env);
  }
  std::string Url(const std::string& space) override {
    return "sqlite:" + folder_.path() + "/store.db?namespace=" + space;
  }

 private:
  TemporaryFolder folder_;
};

class PostgresBackend final : public Backend {
 public:
  PostgresBackend() : number_(++count_) {}

  std::unique_ptr<store::Store> Open(const std::string& space, Env& env) override {
    return OpenOrThrow(Url(space), env);
  }
  std::string Url(const std::string& space) override {
    return PostgresServer::Shared().Url() + "?namespace=t" + std::to_string(number_) + "_" + space;
  }

 private:
  // One database for all tests of a process: every test has its own namespaces.
  static inline std::atomic<int> count_ = 0;
  const int number_;
};

class DynamoDbBackend final : public Backend {
 public:
  DynamoDbBackend() : number_(++count_) {}

  std::unique_ptr<store::Store> Open(const std::string& space, Env& env) override {
    return OpenOrThrow(Url(space), env);
  }
  std::string Url(const std::string& space) override {
    return DynamoDbServer::Shared().Url(UniqueName("contract")) + "&namespace=t" +
           std::to_string(number_) + "_" + space;
  }

 private:
  static inline std::atomic<int> count_ = 0;
  const int number_;
};

class OpenSearchBackend final : public Backend {
 public:
  OpenSearchBackend() : number_(++count_) {}

  std::unique_ptr<store::Store> Open(const std::string& space, Env& env) override {
    return OpenOrThrow(Url(space), env);
  }
  std::string Url(const std::string& space) override {
    return "opensearch+http://127.0.0.1:" + std::to_string(OpenSearchServer::Shared().port()) +
           "?namespace=" + UniqueName(std::to_string(number_) + "_" + space);
  }

 private:
  static inline std::atomic<int> count_ = 0;
  const int number_;
};

}  // namespace

std::vector<std::string> BackendNames() {
  return {"memory", "metered", "sqlite", "postgresql", "opensearch", "dynamodb"};
}

std::unique_ptr<Backend> NewBackend(const std::string& name, std::string* reason) {
  if (name == "memory") return std::make_unique<MemoryBackend>();
  if (name == "metered") return std::make_unique<MeteredBackend>();
  if (name == "sqlite") return std::make_unique<SqliteBackend>();
  *reason = name == "opensearch" ? OpenSearchServer::Unavailable()
            : name == "dynamodb" ? DynamoDbServer::Unavailable()
                                 : PostgresServer::Unavailable();
  if (!reason->empty()) return nullptr;
  if (name == "opensearch") return std::make_unique<OpenSearchBackend>();
  if (name == "dynamodb") return std::make_unique<DynamoDbBackend>();
  return std::make_unique<PostgresBackend>();
}

}  // namespace muster::testing
