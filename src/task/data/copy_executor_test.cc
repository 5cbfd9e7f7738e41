#include "task/data/copy_executor.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "core/sha256.h"
#include "sql/sqlite.h"
#include "support/temporary_folder.h"
#include "task/data/staging.h"
#include "task/parameters.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

class CopyExecutorTest : public ::testing::Test {
 protected:
  states::TaskCall Call(const std::string& object, const std::string& token = "run/1") {
    return {.resource = "muster:copy",
            .input = Json{{"source", "csv:" + folder_.At("data")},
                          {"object", object},
                          {"staging", StagingFolder()},
                          {"format", "jsonl"},
                          {"tenant", "acme"},
                          {"migration", "m-1"}},
            .credentials = nullptr,
            .token = token,
            .execution = "run",
            .state = "Copy"};
  }

  std::string StagingFolder() const { return folder_.path() + "/staging"; }

  Json Succeed(const states::TaskCall& call) {
    const states::TaskOutcome outcome = executor_->Start(call, context_);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
      return nullptr;
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }

  states::TaskFailure Fail(const states::TaskCall& call) {
    const states::TaskOutcome outcome = executor_->Start(call, context_);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    return failure != nullptr ? *failure : states::TaskFailure{"none", ""};
  }

  std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Json Manifest(const std::string& object) {
    return Json::parse(Read(StagingFolder() + "/" + object + ".manifest.json"));
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<states::TaskExecutor> executor_ = MakeCopyExecutor();
  TestContext context_;
};

TEST_F(CopyExecutorTest, StagesAnObjectWithItsManifest) {
  folder_.Write("data/User.csv", "Id,Name\nu1,Ann\nu2,\n");
  const Json result = Succeed(Call("User"));
  const std::string lines = Read(StagingFolder() + "/User.jsonl");
  EXPECT_EQ(lines, "{\"Id\":\"u1\",\"Name\":\"Ann\"}\n{\"Id\":\"u2\",\"Name\":null}\n");
  EXPECT_EQ(result, (Json{{"rows", 2},
                          {"bytes", lines.size()},
                          {"file", StagingFolder() + "/User.jsonl"},
                          {"failed", 0}}));
  const Json manifest = Manifest("User");
  EXPECT_EQ(manifest["sha256"], Sha256Hex(lines));
  EXPECT_EQ(manifest["rows"], 2);
  EXPECT_EQ(manifest["source"], "csv:" + folder_.path() + "/data");
  EXPECT_EQ(manifest["columns"], (Json{{"Id", "VARCHAR"}, {"Name", "VARCHAR"}}));
}

TEST_F(CopyExecutorTest, RelativePathsStartAtTheGivenFolder) {
  folder_.Write("a b/data/User.csv", "Id\nu1\n");
  states::TaskCall call = Call("User");
  call.input["source"] = "csv:data";
  call.input["staging"] = "staged";
  call.input["folder"] = folder_.At("a b");
  EXPECT_EQ(Succeed(call)["file"], folder_.At("a b/staged/User.jsonl"));
  EXPECT_EQ(InFolder("/f", "sqlite:x.db"), "sqlite:/f/x.db");
  EXPECT_EQ(InFolder("/a b/%", "jsonl:d?id=x#y"), "jsonl:/a%20b/%25/d?id=x#y");
  EXPECT_EQ(InFolder("/", "staging/m"), "/staging/m");
  for (const char* place : {"sqlite:/x.db", "sqlite:///x.db", "s3://bucket/x", "/staging",
                            "postgresql://host/db", "csv:${env:DATA}"}) {
    EXPECT_EQ(InFolder("/f", place), place);
  }
  EXPECT_EQ(InFolder("", "sqlite:x.db"), "sqlite:x.db");
}

// The store was deleted, and another run started under the same name.
TEST_F(CopyExecutorTest, ObjectsStagedByAnotherRunDoNotCount) {
  folder_.Write("data/User.csv", "Id\nu1\n");
  states::TaskCall call = Call("User");
  call.input["staging_run"] = "one";
  EXPECT_EQ(Succeed(call)["rows"], 1);
  EXPECT_EQ(Manifest("User")["run"], "one");
  const auto other = Staging::At(StagingFolder(), {.run = "two"});
  EXPECT_FALSE(*other->Find("User"));
  EXPECT_TRUE(other->List()->empty());
  EXPECT_TRUE(*Staging::At(StagingFolder())->Find("User"));
  folder_.Write("data/User.csv", "Id\nu1\nu2\n");
  EXPECT_EQ(Succeed(call)["rows"], 1);
  call.input["staging_run"] = "two";
  EXPECT_EQ(Succeed(call)["rows"], 2);
  // Objects staged by an older version do not name their run.
  Json unmarked = Manifest("User");
  unmarked.erase("run");
  folder_.Write("staging/User.manifest.json", ToJsonText(unmarked));
  EXPECT_FALSE(*other->Find("User"));
  EXPECT_TRUE(*Staging::At(StagingFolder(), {.run = "two", .unmarked = true})->Find("User"));
}

TEST_F(CopyExecutorTest, StagedFilesArePrivate) {
  using std::filesystem::perms;
  const auto mode = [&](const std::string& name) {
    return std::filesystem::status(StagingFolder() + name).permissions();
  };
  folder_.Write("data/User.csv", "Id\nu1\n");
  for (const char* format : {"jsonl", "parquet"}) {
    states::TaskCall call = Call("User", std::string("run/") + format);
    call.input["format"] = format;
    Succeed(call);
    EXPECT_EQ(mode(std::string("/User.") + format), perms::owner_read | perms::owner_write);
    EXPECT_EQ(mode("/User.manifest.json"), perms::owner_read | perms::owner_write);
  }
  EXPECT_EQ(mode(""), perms::owner_all);
}

TEST_F(CopyExecutorTest, ARepetitionWithTheSameTokenCopiesNothing) {
  folder_.Write("data/User.csv", "Id\nu1\n");
  const Json first = Succeed(Call("User"));
  folder_.Write("data/User.csv", "Id\nu1\nu2\n");
  EXPECT_EQ(Succeed(Call("User")), first);
  EXPECT_EQ(Succeed(Call("User", "run/2"))["rows"], 2) << "another call copies again";
}

TEST_F(CopyExecutorTest, MissingOrTruncatedFileIsCopiedAgain) {
  folder_.Write("data/User.csv", "Id\nu1\n");
  Succeed(Call("User"));
  std::filesystem::resize_file(StagingFolder() + "/User.jsonl", 3);
  EXPECT_EQ(Succeed(Call("User"))["rows"], 1);
  EXPECT_EQ(Read(StagingFolder() + "/User.jsonl"), "{\"Id\":\"u1\"}\n");
}

TEST_F(CopyExecutorTest, LeftoversOfAKilledProcessAreRemoved) {
  folder_.Write("data/User.csv", "Id\nu1\n");
  folder_.Write("staging/User.0123.jsonl.partial", "{\"I");
  folder_.Write("staging/User.Role.0123.jsonl.partial", "{\"I");
  Succeed(Call("User"));
  EXPECT_FALSE(std::filesystem::exists(StagingFolder() + "/User.0123.jsonl.partial"));
  EXPECT_TRUE(std::filesystem::exists(StagingFolder() + "/User.Role.0123.jsonl.partial"))
      << "it is another object's";
}

TEST_F(CopyExecutorTest, MoreUnreadableRowsThanTheLimitFailTheCall) {
  folder_.Write("data/User.csv", "Id,Name\nu1,Ann\nu2\nu3,Bo,too,many\nu4,Cy\n");
  states::TaskCall call = Call("User");
  call.input["max_unreadable"] = 1;
  const states::TaskOutcome outcome = executor_->Start(call, context_);
  const auto* failure = std::get_if<states::TaskFailure>(&outcome);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->error, "Copy.Unreadable");
  EXPECT_TRUE(failure->cause.starts_with("2 rows of User cannot be read, 1 may be (2 rows can)"))
      << failure->cause;
  EXPECT_FALSE(std::filesystem::exists(StagingFolder() + "/User.manifest.json"));
  // All are listed, each with its reason.
  const std::string letters = Read(StagingFolder() + "/unreadable/User.jsonl");
  EXPECT_EQ(std::count(letters.begin(), letters.end(), '\n'), 2) << letters;
  call.input["max_unreadable"] = 2;
  EXPECT_EQ(Succeed(call)["failed"], 2);
}

TEST_F(CopyExecutorTest, ParquetHoldsTheSameRowsInItsOwnFile) {
  std::string rows = "Id,Name\n";
  for (int i = 0; i < 1000; ++i) rows += "u" + std::to_string(i) + ",Somebody\n";
  folder_.Write("data/User.csv", rows);
  states::TaskCall call = Call("User");
  call.input["format"] = "parquet";
  const Json result = Succeed(call);
  EXPECT_EQ(result["rows"], 1000);
  const std::string bytes = Read(StagingFolder() + "/User.parquet");
  EXPECT_EQ(bytes.substr(0, 4), "PAR1");
  EXPECT_EQ(Manifest("User")["sha256"], Sha256Hex(bytes));
  EXPECT_EQ(result["bytes"], bytes.size());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(StagingFolder()), {}), 2);
}

TEST_F(CopyExecutorTest, RowsThatCannotBeReadAreCountedAndKept) {
  folder_.Write("data/User.csv", "Id,Name\nu1,Ann\nu2\n");
  const Json result = Succeed(Call("User"));
  EXPECT_EQ(result["rows"], 1);
  EXPECT_EQ(result["failed"], 1);
  EXPECT_NE(Read(StagingFolder() + "/unreadable/User.jsonl").find("1 fields instead of 2"),
            std::string::npos);
}

TEST_F(CopyExecutorTest, UnreadableRowsReplaceNoOtherObject) {
  folder_.Write("data/User.failed.csv", "Id,Name\nf1,Flo\n");
  folder_.Write("data/User.csv", "Id,Name\nu1,Ann\nu2\n");
  Succeed(Call("User.failed"));
  const std::string staged = Read(StagingFolder() + "/User.failed.jsonl");
  EXPECT_EQ(Succeed(Call("User"))["failed"], 1);
  EXPECT_EQ(Read(StagingFolder() + "/User.failed.jsonl"), staged);
  folder_.Write("data/User.csv", "Id,Name\nu1,Ann\n");
  EXPECT_EQ(Succeed(Call("User", "run/2"))["failed"], 0);
  EXPECT_EQ(Read(StagingFolder() + "/User.failed.jsonl"), staged);
  EXPECT_FALSE(std::filesystem::exists(StagingFolder() + "/unreadable/User.jsonl"));
}

TEST_F(CopyExecutorTest, TablesAreStagedWithTheirTypes) {
  const auto db = sql::SqliteDb::Open(folder_.At("s.db"), sql::SqliteDb::Mode::kCreate,
                                      std::chrono::milliseconds(1000));
  ASSERT_TRUE(
      (*db)->Execute("CREATE TABLE t (id INTEGER PRIMARY KEY, price REAL);"
                     "INSERT INTO t VALUES (1, 2.5)"));
  states::TaskCall call = Call("t");
  call.input["source"] = "sqlite:" + folder_.At("s.db");
  EXPECT_EQ(Succeed(call)["rows"], 1);
  EXPECT_EQ(Manifest("t")["columns"], (Json{{"id", "BIGINT"}, {"price", "DOUBLE"}}));
}

TEST_F(CopyExecutorTest, UnknownObjectIsReportedWithTheExistingOnes) {
  folder_.Write("data/User.csv", "Id\n");
  const states::TaskFailure failure = Fail(Call("Usr"));
  EXPECT_EQ(failure.error, "Copy.NotFound");
  EXPECT_NE(failure.cause.find("has no object 'Usr'; it has User"), std::string::npos)
      << failure.cause;
}

TEST_F(CopyExecutorTest, AnObjectThatTheSourceLeavesOutIsReportedWithTheReason) {
  const auto db = sql::SqliteDb::Open(folder_.At("s.db"), sql::SqliteDb::Mode::kCreate,
                                      std::chrono::milliseconds(1000));
  ASSERT_TRUE((*db)->Execute("CREATE TABLE muster_records (key TEXT PRIMARY KEY)"));
  states::TaskCall call = Call("muster_records");
  call.input["source"] = "sqlite:" + folder_.At("s.db");
  const states::TaskFailure failure = Fail(call);
  EXPECT_EQ(failure.error, "Copy.NotFound");
  EXPECT_NE(failure.cause.find("leaves out 'muster_records': a table of Muster"), std::string::npos)
      << failure.cause;
}

TEST_F(CopyExecutorTest, AFolderOfAnotherMigrationIsRefused) {
  folder_.Write("data/User.csv", "Id\nu1\n");
  Succeed(Call("User"));
  states::TaskCall call = Call("User", "other/1");
  call.input["migration"] = "m-2";
  const states::TaskFailure failure = Fail(call);
  // Plans retry a conflict; that of another migration's folder would only fail again.
  EXPECT_EQ(failure.error, "Copy.Invalid");
  EXPECT_NE(failure.cause.find("holds User of tenant"), std::string::npos) << failure.cause;
}

TEST_F(CopyExecutorTest, WrongParametersAreNamed) {
  states::TaskCall call = Call("User");
  call.input["format"] = "xml";
  EXPECT_EQ(Fail(call).cause, "muster:copy: format must be jsonl or parquet");
  call = Call("User");
  call.input["stagng"] = "x";
  EXPECT_EQ(Fail(call).cause, "muster:copy: unknown parameter stagng");
}

}  // namespace
}  // namespace muster::task
