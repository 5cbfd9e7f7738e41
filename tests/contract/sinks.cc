#include "contract/sinks.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <stdexcept>

#include "base/json.h"
#include "base/sqlite.h"
#include "muster/migrate.h"
#include "pipeline/memory_sink.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace muster::testing {
namespace {

std::unique_ptr<Sink> OpenOrThrow(const std::string& url) {
  auto sink = OpenSink(url, RealEnv());
  if (!sink) throw std::runtime_error(sink.error().ToString());
  return *std::move(sink);
}

std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

class MemoryUnderTest final : public SinkUnderTest {
 public:
  std::unique_ptr<Sink> Open() override { return std::make_unique<Shared>(sink_); }
  std::vector<std::string> Names() override {
    std::vector<std::string> names;
    for (const MemorySink::Entry& entry : sink_.Documents(SuiteCollection().name)) {
      names.push_back(ParseJson(entry.body, "document").value()["name"].get<std::string>());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  class Shared final : public Sink {
   public:
    explicit Shared(Sink& sink) : sink_(sink) {}
    Result<std::vector<TargetChange>> Prepare(const Collection& collection,
                                              bool evaluate) override {
      return sink_.Prepare(collection, evaluate);
    }
    Result<std::unique_ptr<Writer>> Open(const std::string& collection,
                                         const Fence& fence) override {
      return sink_.Open(collection, fence);
    }

   private:
    Sink& sink_;
  };
  MemorySink sink_;
};

class SqliteUnderTest final : public SinkUnderTest {
 public:
  std::unique_ptr<Sink> Open() override { return OpenOrThrow("sqlite:" + File() + "#documents"); }
  std::vector<std::string> Names() override {
    auto db = SqliteDb::Open(File(), SqliteDb::Mode::kReadOnly, std::chrono::seconds(10)).value();
    return SortedLines(
        db->QueryText("SELECT coalesce(group_concat(name, char(10)), '') FROM documents").value());
  }

 private:
  std::string File() const { return folder_.At("target.db"); }
  TemporaryFolder folder_;
};

class PostgresUnderTest final : public SinkUnderTest {
 public:
  PostgresUnderTest() { Server().Exec("CREATE SCHEMA " + schema_); }
  std::unique_ptr<Sink> Open() override {
    return OpenOrThrow(Server().Url() + "?schema=" + schema_ + "#documents");
  }
  std::vector<std::string> Names() override {
    return SortedLines(
        Server().Exec("SELECT string_agg(name, E'\\n') FROM " + schema_ + ".documents"));
  }

 private:
  // One server for all tests of a process: every test has a schema of its own.
  static PostgresServer& Server() {
    static PostgresServer server;
    return server;
  }
  static inline std::atomic<int> count_ = 0;
  const std::string schema_ = "t" + std::to_string(++count_);
};

}  // namespace

Collection SuiteCollection() {
  return {"documents",
          R"({"columns":[{"name":"_id","type":"text"},{"name":"name","type":"text"},
              {"name":"number","type":"bigint"}]})"};
}

std::vector<std::string> SinkNames() { return {"memory", "sqlite", "postgresql"}; }

std::unique_ptr<SinkUnderTest> NewSink(const std::string& name, std::string* reason) {
  if (name == "memory") return std::make_unique<MemoryUnderTest>();
  if (name == "sqlite") return std::make_unique<SqliteUnderTest>();
  *reason = PostgresServer::Unavailable();
  if (!reason->empty()) return nullptr;
  return std::make_unique<PostgresUnderTest>();
}

}  // namespace muster::testing
