#include "contract/sources.h"

#include <atomic>
#include <stdexcept>

#include "muster/migrate.h"
#include "sql/sqlite.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "work/call_watch.h"

namespace muster::testing {
namespace {

std::unique_ptr<pipeline::Source> OpenOrThrow(const std::string& url) {
  auto source = pipeline::OpenSource(url, RealEnv());
  if (!source) throw std::runtime_error(source.error().ToString());
  return *std::move(source);
}

// Inserted neither in key order nor in name order.
std::string Insert(const std::string& table) {
  return "INSERT INTO " + table +
         " SELECT (i * 7919) % 1009, 'd' || lpad(i::text, 3, '0') FROM"
         " generate_series(0, " +
         std::to_string(SourceUnderTest::kDocuments - 1) + ") i";
}

// Lines of a file, each with a name.
class FileUnderTest final : public SourceUnderTest {
 public:
  FileUnderTest(const std::string& scheme, const std::string& header, const std::string& before,
                const std::string& after) {
    std::string text = header;
    for (int i = 0; i < kDocuments; ++i) {
      const std::string number = std::to_string(i);
      text += before + "d" + std::string(3 - number.size(), '0') + number + after + "\n";
    }
    url_ = scheme + ":" + folder_.Write("items." + scheme, text);
  }
  std::unique_ptr<pipeline::Source> Open() override { return OpenOrThrow(url_); }
  bool splits() const override { return false; }  // not so small a file

 private:
  const TemporaryFolder folder_;
  std::string url_;
};

// A decorator must not change behaviour.
class WatchedUnderTest final : public SourceUnderTest {
 public:
  std::unique_ptr<pipeline::Source> Open() override {
    return work::NewWatchedSource(*sources_.emplace_back(inner_.Open()), watch_);
  }
  bool splits() const override { return inner_.splits(); }

 private:
  FileUnderTest inner_{"jsonl", "", "{\"name\":\"", "\"}"};
  std::vector<std::unique_ptr<pipeline::Source>> sources_;
  work::CallWatch watch_{RealEnv()};
};

class SqliteTables final : public SourceUnderTest {
 public:
  SqliteTables(const std::string& columns, std::string rest) : rest_(std::move(rest)) {
    auto db =
        sql::SqliteDb::Open(File(), sql::SqliteDb::Mode::kCreate, std::chrono::seconds(10)).value();
    const auto done = db->Execute(
        "CREATE TABLE items " + columns +
        "; WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1"
        " FROM n WHERE i < " +
        std::to_string(kDocuments - 1) +
        ") INSERT INTO items SELECT"
        " (i * 7919) % 1009, printf('d%03d', i) FROM n; CREATE VIEW seen AS SELECT * FROM items");
    if (!done) throw std::runtime_error(done.error().ToString());
  }
  std::unique_ptr<pipeline::Source> Open() override {
    return OpenOrThrow("sqlite:" + File() + rest_);
  }

 private:
  std::string File() const { return folder_.At("source.db"); }
  TemporaryFolder folder_;
  const std::string rest_;
};

class PostgresTable final : public SourceUnderTest {
 public:
  // `columns` of the table, `rest` of the URL after the schema.
  PostgresTable(const std::string& columns, std::string rest) : rest_(std::move(rest)) {
    Server().Exec("CREATE SCHEMA " + schema_ + "; CREATE TABLE " + schema_ + ".items (" + columns +
                  "); " + Insert(schema_ + ".items"));
  }
  std::unique_ptr<pipeline::Source> Open() override {
    return OpenOrThrow(Server().Url() + "?schema=" + schema_ + "&options=-csearch_path%3D" +
                       schema_ + rest_);
  }

 private:
  // One database for all tests of a process: every test has its own schema.
  static PostgresServer& Server() { return PostgresServer::Shared(); }
  static inline std::atomic<int> count_ = 0;
  const std::string schema_ = "s" + std::to_string(++count_);
  const std::string rest_;
};

}  // namespace

std::vector<std::string> SourceNames() {
  return {"jsonl",
          "watched",
          "csv",
          "sqlite",
          "sqlite_hidden_rowid",
          "sqlite_without_rowid",
          "sqlite_view",
          "postgresql",
          "postgresql_text_key",
          "postgresql_two_columns",
          "postgresql_no_key",
          "postgresql_query"};
}

std::unique_ptr<SourceUnderTest> NewSource(const std::string& name, std::string* reason) {
  if (name == "jsonl") return std::make_unique<FileUnderTest>(name, "", "{\"name\":\"", "\"}");
  if (name == "watched") return std::make_unique<WatchedUnderTest>();
  if (name == "csv") return std::make_unique<FileUnderTest>(name, "name,n\n", "", ",1");
  if (name == "sqlite") {
    return std::make_unique<SqliteTables>("(id INTEGER PRIMARY KEY, name TEXT)", "");
  }
  if (name == "sqlite_hidden_rowid") {
    return std::make_unique<SqliteTables>("(rowid, name TEXT PRIMARY KEY)", "#items");
  }
  if (name == "sqlite_without_rowid") {
    return std::make_unique<SqliteTables>(
        "(id ANY, name TEXT, PRIMARY KEY (name DESC, id)) WITHOUT ROWID", "#items");
  }
  if (name == "sqlite_view") {
    return std::make_unique<SqliteTables>("(id INTEGER, name TEXT)", "?key=id#seen");
  }
  *reason = PostgresServer::Unavailable();
  if (!reason->empty()) return nullptr;
  if (name == "postgresql") {
    return std::make_unique<PostgresTable>("id int PRIMARY KEY, name text", "");
  }
  if (name == "postgresql_text_key") {
    return std::make_unique<PostgresTable>("id int, name text COLLATE \"C\" PRIMARY KEY", "#items");
  }
  if (name == "postgresql_two_columns") {
    return std::make_unique<PostgresTable>("id int, name text, PRIMARY KEY (name, id)", "#items");
  }
  if (name == "postgresql_no_key") {
    return std::make_unique<PostgresTable>("id int, name text", "#items");
  }
  return std::make_unique<PostgresTable>(
      "id int, name text", "&key=id&query=SELECT%20name,%20-id%20AS%20id%20FROM%20items#items");
}

}  // namespace muster::testing
