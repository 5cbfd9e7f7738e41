// Backend specifics: files, damage, and kills.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "muster/store.h"
#include "sql/sqlite.h"
#include "store/sqlite/sqlite_schema.h"
#include "support/temporary_folder.h"

extern char** environ;

namespace muster::store {
namespace {

using namespace std::chrono_literals;

class SqliteStoreTest : public ::testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/store.db"; }
  std::string Url() const { return "sqlite:" + Path(); }
  Result<std::unique_ptr<Store>> Open() { return OpenStore(Url(), RealEnv()); }

  testing::TemporaryFolder folder_;
};

Change NewChange(const std::string& key) {
  return Change::Put(Record{.kind = "work", .queue = "q", .key = key}, Due::AtOnce());
}

TEST_F(SqliteStoreTest, NewFileCanBeOpenedConcurrently) {
  for (int round = 0; round < 20; ++round) {
    const std::string url = Url() + std::to_string(round);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        auto store = OpenStore(url, RealEnv());
        ASSERT_TRUE(store) << store.error().ToString();
        const Change change = NewChange("k" + std::to_string(i));
        EXPECT_TRUE((*store)->Write({&change, 1}));
      });
    }
    threads.clear();
    EXPECT_EQ(OpenStore(url, RealEnv()).value()->Scan("work", "", "", 100).value().size(), 16u);
  }
}

TEST_F(SqliteStoreTest, NewFileAndItsCompanionsArePrivate) {
  const auto store = Open().value();
  const Change change = NewChange("a");
  ASSERT_TRUE(store->Write({&change, 1}));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    using std::filesystem::perms;
    EXPECT_EQ(entry.status().permissions(), perms::owner_read | perms::owner_write) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 2) << "the write-ahead log";
}

TEST_F(SqliteStoreTest, ExistingFileKeepsItsPermissions) {
  std::ofstream(Path()).close();
  std::filesystem::permissions(Path(), static_cast<std::filesystem::perms>(0640));
  const auto store = Open().value();
  EXPECT_EQ(std::filesystem::status(Path()).permissions(),
            static_cast<std::filesystem::perms>(0640));
}

TEST_F(SqliteStoreTest, NewerSchemaIsRefusedAndLeftAlone) {
  Open().value();
  auto db = sql::SqliteDb::Open(Path(), sql::SqliteDb::Mode::kExisting, 1s).value();
  ASSERT_TRUE(db->Execute("UPDATE muster_schema SET version = 99"));
  auto store = Open();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::kIncompatible);
  EXPECT_NE(store.error().message.find("99"), std::string::npos);
  EXPECT_NE(store.error().message.find("up to 1"), std::string::npos);
  EXPECT_EQ(SqliteSchemaVersion(*db, "muster").value(), 99);
}

TEST_F(SqliteStoreTest, StateIsReadableInSql) {
  auto store = Open().value();
  for (const char* key : {"a", "b", "c"}) {
    const Change change = NewChange(key);
    ASSERT_TRUE(store->Write({&change, 1}));
  }
  auto held =
      store->Claim({.kind = "work", .queue = "q", .key = "a", .owner = "me", .claim_id = "1"});
  const Change done = Change::Put(
      store->Claim({.kind = "work", .queue = "q", .key = "b", .owner = "me", .claim_id = "2"})
          ->at(0),
      Due::Never());
  ASSERT_TRUE(store->Write({&done, 1}));
  auto db = sql::SqliteDb::Open(Path(), sql::SqliteDb::Mode::kReadOnly, 1s).value();
  EXPECT_EQ(db->QueryText("SELECT group_concat(key || ' ' || state, ', ') FROM"
                          " (SELECT * FROM muster_status ORDER BY key)")
                .value(),
            "a leased, b never due, c due");
  EXPECT_EQ(db->QueryText("SELECT kind || queue || due || leased || waiting || never_due || records"
                          " FROM muster_queues")
                .value(),
            "workq11013");
}

// SQLite plans by statistics that may date from when the table was small.
TEST_F(SqliteStoreTest, ClaimUsesTheIndexOfDueTimesWhateverTheStatistics) {
  auto store = Open().value();
  for (int i = 0; i < 20; ++i) {
    const Change change = NewChange("k" + std::to_string(i));
    ASSERT_TRUE(store->Write({&change, 1}));
  }
  auto db = sql::SqliteDb::Open(Path(), sql::SqliteDb::Mode::kExisting, 1s).value();
  ASSERT_TRUE(db->Execute("ANALYZE"));
  ASSERT_TRUE(
      db->Execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000)"
                  " INSERT INTO muster_records SELECT 'work', 'q', 'done' || i, 1, NULL, '', 1,"
                  " 0, '', '{}' FROM n"));
  store = Open().value();
  const auto read_bytes = [] {  // by this thread, from the page cache or the disk
    std::ifstream io("/proc/thread-self/io");
    std::string name;
    for (long long value = 0; io >> name >> value;) {
      if (name == "rchar:") return value;
    }
    return -1LL;
  };
  const long long before = read_bytes();
  EXPECT_EQ(store->Claim({.kind = "work", .queue = "q", .owner = "me", .claim_id = "1"})->size(),
            1u);
  EXPECT_LT(read_bytes() - before, 1'000'000);
}

// A process writes records and prints each key after the store has acknowledged it, until it is
// killed: what it printed must be there, and the file must be intact.
TEST_F(SqliteStoreTest, AcknowledgedWritesSurviveKill9) {
  Open().value();
  std::set<std::string> acknowledged;
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string prefix = "r" + std::to_string(round) + "-";
    const std::string url = Url();
    const char* argv[] = {"/proc/self/exe", "--write-forever", url.c_str(), prefix.c_str(),
                          nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, argv[0], &actions, nullptr, const_cast<char**>(argv), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE* output = fdopen(ends[0], "r");
    char line[100];
    for (int lines = 0; fgets(line, sizeof line, output) != nullptr; ++lines) {
      acknowledged.insert(std::string(line, strcspn(line, "\n")));
      if (lines == 40 + 17 * round) kill(child, SIGKILL);
    }
    fclose(output);
    waitpid(child, nullptr, 0);
  }
  auto store = Open().value();
  for (const std::string& key : acknowledged) {
    EXPECT_TRUE(store->Get("work", key).value()) << key;
  }
  auto db = sql::SqliteDb::Open(Path(), sql::SqliteDb::Mode::kExisting, 1s).value();
  EXPECT_EQ(db->QueryText("PRAGMA integrity_check").value(), "ok");
}

TEST_F(SqliteStoreTest, FailedChangesOfAGroupAreNotApplied) {
  auto store = Open().value();
  auto db = sql::SqliteDb::Open(Path(), sql::SqliteDb::Mode::kExisting, 1s).value();
  ASSERT_TRUE(
      db->Execute("CREATE TRIGGER refuse BEFORE INSERT ON muster_records "
                  "WHEN NEW.key LIKE 'bad%' BEGIN SELECT RAISE(ABORT, 'refused'); END"));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const bool is_bad = i == 0;
        const std::string key =
            (is_bad ? "bad-" : "good-") + std::to_string(i) + "-" + std::to_string(round);
        const Change change = NewChange(key);
        const auto written = store->Write({&change, 1});
        EXPECT_FALSE(is_bad && written) << key;
        EXPECT_EQ(store->Get("work", key).value().has_value(), written.has_value()) << key;
      }
    });
  }
  threads.clear();
  const Change after = NewChange("good-after");
  EXPECT_TRUE(store->Write({&after, 1}));
}

// A power failure tears the log's tail. Whatever is lost, the store opens with a prefix of what was
// written, in order, and never with half a change.
TEST_F(SqliteStoreTest, TornLogLosesOnlyItsTail) {
  auto store = Open().value();
  for (int i = 0; i < 40; ++i) {
    const std::vector<Change> pair{NewChange("a" + std::to_string(100 + i)),
                                   NewChange("b" + std::to_string(100 + i))};
    ASSERT_TRUE(store->Write(pair));
  }
  const std::string log = Path() + "-wal";
  const auto size = std::filesystem::file_size(log);
  size_t last = 0;
  for (uintmax_t keep = 0; keep <= size; keep += 1'111) {
    const std::string copy = folder_.path() + "/copy.db";
    for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(copy + ending);
    std::filesystem::copy_file(Path(), copy);
    std::filesystem::copy_file(log, copy + "-wal");
    std::filesystem::resize_file(copy + "-wal", keep);
    auto torn = OpenStore("sqlite:" + copy, RealEnv());
    ASSERT_TRUE(torn) << torn.error().ToString();
    const size_t as = (*torn)->Scan("work", "a", "", 100).value().size();
    const size_t bs = (*torn)->Scan("work", "b", "", 100).value().size();
    EXPECT_EQ(as, bs) << keep;
    EXPECT_GE(as, last);
    last = as;
  }
  EXPECT_GE(last, 39u);
}

// On several threads, whose writes are committed as a group.
int WriteForever(const std::string& url, const std::string& prefix) {
  auto store = OpenStore(url, RealEnv());
  if (!store) return 1;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0;; ++i) {
        const std::string key = prefix + std::to_string(thread) + "-" + std::to_string(i);
        const Change change = NewChange(key);
        if (!(*store)->Write({&change, 1})) return;
        printf("%s\n", key.c_str());
        fflush(stdout);
      }
    });
  }
  threads.clear();
  return 1;
}

}  // namespace
}  // namespace muster::store

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--write-forever") {
    return muster::store::WriteForever(argv[2], argv[3]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
