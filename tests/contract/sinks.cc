#include "contract/sinks.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/file/file_sink_state.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/metered_sink.h"
#include "pipeline/flow/wrappers.h"
#include "sql/sqlite.h"
#include "support/opensearch_server.h"
#include "support/postgres_server.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"
#include "work/call_watch.h"

namespace muster::testing {
namespace {

std::unique_ptr<pipeline::Sink> OpenOrThrow(const std::string& url) {
  auto sink = pipeline::OpenSink(url, RealEnv());
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

std::string NameIn(std::string_view document) {
  return ParseJson(document, "document").value()["name"].get<std::string>();
}

class MemoryUnderTest final : public SinkUnderTest {
 public:
  std::unique_ptr<pipeline::Sink> Open() override {
    return std::make_unique<Shared>(sink_, replaced_);
  }
  void Replace() override { ++replaced_; }
  std::vector<std::string> Names() override {
    std::vector<std::string> names;
    for (const pipeline::MemorySink::Entry& entry : sink_.Documents(SuiteCollection().name)) {
      names.push_back(NameIn(entry.body));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  class Shared final : public pipeline::SinkWrapper {
   public:
    Shared(pipeline::Sink& sink, const int& replaced)
        : pipeline::SinkWrapper(sink), replaced_(replaced) {}
    Result<std::string> Identity(const std::string& /*collection*/) override {
      return std::to_string(replaced_);
    }

   private:
    const int& replaced_;
  };
  pipeline::MemorySink sink_;
  int replaced_ = 0;
};

// A decorator must not change behaviour.
class DecoratedUnderTest : public SinkUnderTest {
 public:
  std::unique_ptr<pipeline::Sink> Open() override {
    return Decorate(*sinks_.emplace_back(inner_.Open()));
  }
  std::vector<std::string> Names() override { return inner_.Names(); }
  void Replace() override { inner_.Replace(); }

 private:
  virtual std::unique_ptr<pipeline::Sink> Decorate(pipeline::Sink& sink) = 0;

  MemoryUnderTest inner_;
  std::vector<std::unique_ptr<pipeline::Sink>> sinks_;
};

class MeteredUnderTest final : public DecoratedUnderTest {
  std::unique_ptr<pipeline::Sink> Decorate(pipeline::Sink& sink) override {
    return pipeline::NewMeteredSink(sink, "run", metrics_, RealEnv());
  }

  Metrics metrics_;
};

class WatchedUnderTest final : public DecoratedUnderTest {
  std::unique_ptr<pipeline::Sink> Decorate(pipeline::Sink& sink) override {
    return work::NewWatchedSink(sink, watch_);
  }

  work::CallWatch watch_{RealEnv()};
};

class SqliteUnderTest final : public SinkUnderTest {
 public:
  std::unique_ptr<pipeline::Sink> Open() override {
    return OpenOrThrow("sqlite:" + File() + "#documents");
  }
  std::vector<std::string> Names() override {
    auto db = sql::SqliteDb::Open(File(), sql::SqliteDb::Mode::kReadOnly, std::chrono::seconds(10))
                  .value();
    return SortedLines(
        db->QueryText("SELECT coalesce(group_concat(name, char(10)), '') FROM documents").value());
  }
  void Replace() override {
    auto db = sql::SqliteDb::Open(File(), sql::SqliteDb::Mode::kExisting, std::chrono::seconds(10))
                  .value();
    const std::string sql =
        db->QueryText("SELECT sql FROM sqlite_schema WHERE name = 'documents'").value();
    if (!db->Execute("DROP TABLE documents; " + sql)) throw std::runtime_error(sql);
  }

 private:
  std::string File() const { return folder_.At("target.db"); }
  TemporaryFolder folder_;
};

// A folder of files: published ones count, and the committed parts of others.
class FilesUnderTest final : public SinkUnderTest {
 public:
  std::unique_ptr<pipeline::Sink> Open() override {
    return OpenOrThrow("jsonl:" + folder_.path() + "/out/");
  }
  std::vector<std::string> Names() override {
    std::vector<std::string> names;
    const std::string state = folder_.path() + "/out/documents/.muster";
    for (const auto& entry : std::filesystem::directory_iterator(state)) {
      if (entry.path().extension() != ".item") continue;
      const std::string path = entry.path().string();
      const pipeline::FileItem item = pipeline::FileItem::FromJson(ReadWhole(path), path).value();
      if (!item.output.empty()) Add(ReadWhole(item.output), names);
      for (const pipeline::FilePiece& piece : item.pieces) {
        Add(ReadWhole(piece.path).substr(0, piece.bytes), names);
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  bool SharedByRuns() const override { return false; }
  void Replace() override { std::filesystem::remove_all(folder_.path() + "/out"); }

 private:
  std::string ReadWhole(const std::string& path) const {
    return folder_.Read(std::filesystem::relative(path, folder_.path()).string());
  }
  static void Add(const std::string& lines, std::vector<std::string>& names) {
    for (const std::string& line : SortedLines(lines)) names.push_back(NameIn(line));
  }
  TemporaryFolder folder_;
};

class OpenSearchUnderTest final : public SinkUnderTest {
 public:
  std::unique_ptr<pipeline::Sink> Open() override {
    return OpenOrThrow("opensearch+" + OpenSearchServer::Shared().Url("/" + index_));
  }
  std::vector<std::string> Names() override {
    OpenSearchServer::Shared().Call("POST", "/" + index_ + "/_refresh");
    const Json answer =
        ParseJson(OpenSearchServer::Shared().Call("GET", "/" + index_ + "/_search?size=1000"),
                  "answer")
            .value();
    std::vector<std::string> names;
    for (const Json& hit : answer["hits"]["hits"]) {
      names.push_back(hit["_source"]["name"].get<std::string>());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void Replace() override {
    OpenSearchServer::Shared().Call("DELETE", "/" + index_);
    OpenSearchServer::Shared().Call("PUT", "/" + index_);
  }

 private:
  static inline std::atomic<int> count_ = 0;
  const std::string index_ = UniqueName("contract" + std::to_string(++count_));
};

class PostgresUnderTest final : public SinkUnderTest {
 public:
  PostgresUnderTest() { Server().Exec("CREATE SCHEMA " + schema_); }
  std::unique_ptr<pipeline::Sink> Open() override {
    return OpenOrThrow(Server().Url() + "?schema=" + schema_ + "#documents");
  }
  std::vector<std::string> Names() override {
    return SortedLines(
        Server().Exec("SELECT string_agg(name, E'\\n') FROM " + schema_ + ".documents"));
  }
  void Replace() override {
    const std::string table = schema_ + ".documents";
    Server().Exec("CREATE TABLE " + table + "_2 (LIKE " + table + " INCLUDING ALL); DROP TABLE " +
                  table + "; ALTER TABLE " + table + "_2 RENAME TO documents");
  }

 private:
  // One database for all tests of a process: every test has its own schema.
  static PostgresServer& Server() { return PostgresServer::Shared(); }
  static inline std::atomic<int> count_ = 0;
  const std::string schema_ = "t" + std::to_string(++count_);
};

}  // namespace

pipeline::Collection SuiteCollection() {
  return {"documents",
          R"({"columns":[{"name":"_id","type":"text"},{"name":"name","type":"text"},
              {"name":"number","type":"bigint"}]})"};
}

std::vector<std::string> SinkNames() {
  return {"memory", "metered", "watched", "files", "sqlite", "postgresql", "opensearch"};
}

std::vector<std::string> FencedSinkNames() {
  return {"memory", "metered", "watched", "files", "sqlite", "postgresql"};
}

std::unique_ptr<SinkUnderTest> NewSink(const std::string& name, std::string* reason) {
  if (name == "memory") return std::make_unique<MemoryUnderTest>();
  if (name == "metered") return std::make_unique<MeteredUnderTest>();
  if (name == "watched") return std::make_unique<WatchedUnderTest>();
  if (name == "sqlite") return std::make_unique<SqliteUnderTest>();
  if (name == "files") return std::make_unique<FilesUnderTest>();
  const bool opensearch = name == "opensearch";
  *reason = opensearch ? OpenSearchServer::Unavailable() : PostgresServer::Unavailable();
  if (!reason->empty()) return nullptr;
  if (opensearch) return std::make_unique<OpenSearchUnderTest>();
  return std::make_unique<PostgresUnderTest>();
}

}  // namespace muster::testing
