// Goal: what SQLite must keep is on the disk when it says so, and what it need not wait for costs
// no wait. Method: a disk that knows what it would have kept if the power failed now: a layer below
// SQLite that takes a copy of a file whenever it is synced, and nothing else of it.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/json.h"
#include "muster/states.h"
#include "muster/store.h"
#include "support/temporary_folder.h"

namespace muster::states {
namespace {

// Stands between SQLite and the real files, for all databases that are opened while it is there.
class SyncedDisk {
 public:
  static SyncedDisk& Get() {
    static SyncedDisk disk;
    return disk;
  }

  int syncs() {
    const std::lock_guard lock(mutex_);
    return syncs_;
  }

  // What would be there after a loss of power, as files in another folder.
  void CopyTo(const std::filesystem::path& from, const std::filesystem::path& to) {
    const std::lock_guard lock(mutex_);
    std::filesystem::create_directories(to);
    for (const auto& [path, bytes] : synced_) {
      const std::filesystem::path file(path);
      if (file.parent_path() != from) continue;
      std::ofstream(to / file.filename(), std::ios::binary)
          .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
  }

 private:
  struct File {
    sqlite3_file base;
    const char* path;
    sqlite3_file* real;
  };

  SyncedDisk() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    vfs_.zName = "synced";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = &Open;
    vfs_.xDelete = &Delete;
    methods_ = {
        .iVersion = 2,
        .xClose = [](sqlite3_file* file) { return Real(file)->pMethods->xClose(Real(file)); },
        .xRead =
            [](sqlite3_file* file, void* bytes, int count, sqlite3_int64 at) {
              return Real(file)->pMethods->xRead(Real(file), bytes, count, at);
            },
        .xWrite =
            [](sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
              return Real(file)->pMethods->xWrite(Real(file), bytes, count, at);
            },
        .xTruncate =
            [](sqlite3_file* file, sqlite3_int64 size) {
              return Real(file)->pMethods->xTruncate(Real(file), size);
            },
        .xSync = &Sync,
        .xFileSize =
            [](sqlite3_file* file, sqlite3_int64* size) {
              return Real(file)->pMethods->xFileSize(Real(file), size);
            },
        .xLock = [](sqlite3_file* file,
                    int lock) { return Real(file)->pMethods->xLock(Real(file), lock); },
        .xUnlock = [](sqlite3_file* file,
                      int lock) { return Real(file)->pMethods->xUnlock(Real(file), lock); },
        .xCheckReservedLock =
            [](sqlite3_file* file, int* answer) {
              return Real(file)->pMethods->xCheckReservedLock(Real(file), answer);
            },
        .xFileControl =
            [](sqlite3_file* file, int operation, void* argument) {
              return Real(file)->pMethods->xFileControl(Real(file), operation, argument);
            },
        .xSectorSize =
            [](sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); },
        .xDeviceCharacteristics =
            [](sqlite3_file* file) {
              return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
            },
        .xShmMap =
            [](sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
              return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, memory);
            },
        .xShmLock =
            [](sqlite3_file* file, int offset, int count, int flags) {
              return Real(file)->pMethods->xShmLock(Real(file), offset, count, flags);
            },
        .xShmBarrier = [](sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); },
        .xShmUnmap = [](sqlite3_file* file,
                        int remove) { return Real(file)->pMethods->xShmUnmap(Real(file), remove); },
        .xFetch = nullptr,
        .xUnfetch = nullptr};
    sqlite3_vfs_register(&vfs_, 1);
  }

  static sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real; }

  static int Open(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* opened, int flags,
                  int* out_flags) {
    auto* file = reinterpret_cast<File*>(opened);
    file->path = path;
    file->real = reinterpret_cast<sqlite3_file*>(file + 1);
    std::memset(file->real, 0, static_cast<size_t>(Get().real_->szOsFile));
    const int rc = Get().real_->xOpen(Get().real_, path, file->real, flags, out_flags);
    file->base.pMethods = rc == SQLITE_OK ? &Get().methods_ : nullptr;
    return rc;
  }

  static int Delete(sqlite3_vfs* /*vfs*/, const char* path, int sync_folder) {
    const std::lock_guard lock(Get().mutex_);
    Get().synced_.erase(path);
    return Get().real_->xDelete(Get().real_, path, sync_folder);
  }

  static int Sync(sqlite3_file* opened, int flags) {
    auto* file = reinterpret_cast<File*>(opened);
    const std::lock_guard lock(Get().mutex_);
    ++Get().syncs_;
    std::ifstream in(file->path, std::ios::binary);
    Get().synced_[file->path] = std::string(std::istreambuf_iterator<char>(in), {});
    return file->real->pMethods->xSync(file->real, flags);
  }

  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
  sqlite3_io_methods methods_{};
  std::mutex mutex_;
  int syncs_ = 0;
  std::map<std::string, std::string> synced_;  // by path
};

class SqlitePowerTest : public ::testing::Test {
 protected:
  SqlitePowerTest() : disk_(SyncedDisk::Get()) { store_ = Open(folder_); }

  static std::unique_ptr<store::Store> Open(const std::filesystem::path& folder) {
    return store::OpenStore("sqlite:" + (folder / "store.db").string(), RealEnv()).value();
  }

  // The store as it is after a loss of power at this moment.
  std::unique_ptr<store::Store> AfterPowerLoss() {
    const std::filesystem::path copy = folder_ / ("copy" + std::to_string(++copies_));
    disk_.CopyTo(folder_, copy);
    return Open(copy);
  }

  static store::Change NewChange(const std::string& key, bool deferred) {
    return store::Change::Put(store::Record{.kind = "work", .queue = "q", .key = key},
                              store::Due::AtOnce(), deferred);
  }

  void Write(const std::string& key, bool deferred) {
    const store::Change change = NewChange(key, deferred);
    ASSERT_TRUE(store_->Write({&change, 1}).value().front().applied);
  }

  std::vector<store::Record> Claim(bool deferred) {
    return store_
        ->Claim({.kind = "work",
                 .queue = "q",
                 .owner = "me",
                 .claim_id = RealEnv().NewId(),
                 .deferred = deferred})
        .value();
  }

  static std::set<std::string> Keys(store::Store& store) {
    std::set<std::string> keys;
    const std::vector<store::Record> records = store.Scan("work", "", "", 100).value();
    for (const store::Record& record : records) keys.insert(record.key);
    return keys;
  }

  SyncedDisk& disk_;
  const muster::testing::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = std::filesystem::canonical(temporary_.path());
  std::unique_ptr<store::Store> store_;
  int copies_ = 0;
};

TEST_F(SqlitePowerTest, AChangeIsOnTheDiskBeforeItIsReported) {
  Write("a", false);
  EXPECT_EQ(Keys(*AfterPowerLoss()), std::set<std::string>{"a"});
}

TEST_F(SqlitePowerTest, DeferredChangeIsVisibleButMayBeLostInAPowerFailure) {
  Write("a", false);
  const int syncs = disk_.syncs();
  Write("b", true);
  Write("c", true);
  EXPECT_EQ(disk_.syncs(), syncs);
  EXPECT_EQ(Keys(*Open(folder_)), (std::set<std::string>{"a", "b", "c"}));
  EXPECT_EQ(Keys(*AfterPowerLoss()), std::set<std::string>{"a"});
}

TEST_F(SqlitePowerTest, AChangeTakesTheDeferredOnesBeforeItToTheDisk) {
  Write("a", true);
  Write("b", true);
  Write("c", false);
  Write("d", true);
  EXPECT_EQ(Keys(*AfterPowerLoss()), (std::set<std::string>{"a", "b", "c"}));
}

TEST_F(SqlitePowerTest, WriteWithOneChangeThatIsNotDeferredIsDurable) {
  const std::vector<store::Change> changes{NewChange("a", true), NewChange("b", false),
                                           NewChange("c", true)};
  ASSERT_TRUE(store_->Write(changes));
  EXPECT_EQ(Keys(*AfterPowerLoss()), (std::set<std::string>{"a", "b", "c"}));
}

TEST_F(SqlitePowerTest, AClaimIsOnTheDiskUnlessItIsDeferred) {
  Write("a", false);
  Write("b", false);
  ASSERT_EQ(Claim(true).size(), 1u);
  EXPECT_EQ(AfterPowerLoss()->Get("work", "a").value()->epoch, 0);
  ASSERT_EQ(Claim(false).size(), 1u);
  const auto copy = AfterPowerLoss();
  EXPECT_EQ(copy->Get("work", "a").value()->epoch, 1);
  EXPECT_EQ(copy->Get("work", "b").value()->epoch, 1);
}

// Each call sees what the disk has while it is made, and goes on from there in a world of its own.
class Calls final : public TaskExecutor {
 public:
  using Seen = std::function<void(const std::string& token)>;
  explicit Calls(Seen seen) : seen_(std::move(seen)) {}

  bool Runs(std::string_view) const override { return true; }
  TaskOutcome Start(const TaskCall& call, TaskContext&) override {
    seen_(call.token);
    return TaskSuccess{{{"state", call.state}, {"input", call.input}}};
  }
  TaskOutcome Poll(const TaskCall& call, const Json&, TaskContext& context) override {
    return Start(call, context);
  }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override {}

 private:
  Seen seen_;
};

constexpr char kMachine[] = R"({
  "StartAt": "First",
  "States": {
    "First": {"Type": "Task", "Resource": "t:a", "ResultPath": "$.first", "Next": "Both"},
    "Both": {"Type": "Parallel", "ResultPath": "$.both", "Next": "Each", "Branches": [
      {"StartAt": "Left", "States": {"Left": {"Type": "Task", "Resource": "t:b", "Next": "Left2"},
                                     "Left2": {"Type": "Task", "Resource": "t:c", "End": true}}},
      {"StartAt": "Right", "States": {"Right": {"Type": "Pass", "End": true}}}]},
    "Each": {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ResultPath": "$.each",
             "ItemProcessor": {"StartAt": "One", "States": {
               "One": {"Type": "Task", "Resource": "t:d", "End": true}}}, "Next": "Last"},
    "Last": {"Type": "Task", "Resource": "t:e", "End": true}
  }})";

std::string RunToTheEnd(store::Store& store, Calls& calls) {
  States states(store, {&calls}, {.lease = milliseconds(1'000), .idle_wait = milliseconds(5)},
                RealEnv());
  EXPECT_TRUE(
      states.Start({.name = "run", .definition = kMachine, .input = R"({"items":[1,2,3]})"}));
  EXPECT_TRUE(states.Work("run", {}));
  return states.Find("run").value()->output;
}

TEST_F(SqlitePowerTest, AnExecutionThatLosesPowerInAnyCallRepeatsThatCallAndNoOther) {
  std::vector<std::string> made;
  std::map<std::string, std::unique_ptr<store::Store>>
      left;  // by the call that the power failed in
  Calls calls([&](const std::string& token) {
    made.push_back(token);
    left[token] = AfterPowerLoss();
  });
  const std::string output = RunToTheEnd(*store_, calls);
  ASSERT_EQ(made.size(), 7u);
  for (size_t failed = 0; failed < made.size(); ++failed) {
    std::set<std::string> again;
    Calls later([&](const std::string& token) { again.insert(token); });
    EXPECT_EQ(RunToTheEnd(*left[made[failed]], later), output);
    for (size_t i = 0; i < made.size(); ++i)
      EXPECT_EQ(again.contains(made[i]), i >= failed) << made[i] << ", lost in " << made[failed];
  }
}

TEST_F(SqlitePowerTest, ACallCostsTwoWaitsForTheDisk) {
  Calls calls([](const std::string&) {});
  RunToTheEnd(*store_, calls);
  const int before = disk_.syncs();
  States states(*store_, {&calls}, {.lease = milliseconds(5'000), .idle_wait = milliseconds(5)},
                RealEnv());
  ASSERT_TRUE(states.Start({.name = "again", .definition = kMachine, .input = R"({"items":[1]})"}));
  ASSERT_TRUE(states.Work("again", {}));
  // Its start, the start and the answer of five calls, and the end of the branch that makes none.
  EXPECT_LE(disk_.syncs() - before, 1 + 2 * 5 + 1);
}

}  // namespace
}  // namespace muster::states
