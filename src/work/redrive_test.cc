// Redrives into a fake OpenSearch, of runs that the store has and of others.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "core/json.h"
#include "muster/work.h"
#include "sql/sqlite.h"
#include "store/backends.h"
#include "support/http_server.h"
#include "support/temporary_folder.h"
#include "work/records.h"

namespace muster::work {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerRequest;

constexpr int64_t kSinceMs = 1'000;
constexpr std::chrono::seconds kBusy{10};

class RedriveTest : public ::testing::Test {
 protected:
  // Every index exists and accepts all documents, except those of `refused` and `conflicts`.
  testing::HttpServerReply Serve(const HttpServerRequest& request) {
    const size_t end = request.target.find_first_of("/?", 1);
    const std::string index = request.target.substr(1, end - 1);
    if (request.target.find("/_bulk") == std::string::npos) {
      return Answer(200, R"({")" + index + R"(":{"settings":{"index":{"uuid":"u"}}}})");
    }
    const std::lock_guard lock(mutex_);
    Json items = Json::array();
    std::istringstream lines(request.body);
    for (std::string action, body; std::getline(lines, action) && std::getline(lines, body);) {
      const Json one = ParseJson(action, "action").value()["index"];
      const std::string id = one["_id"];
      const int64_t version = one.contains("version") ? one["version"].get<int64_t>() : 0;
      Json item{{"status", 201}};
      if (const auto current = conflicts_.find(id); current != conflicts_.end()) {
        item = {{"status", 409},
                {"error",
                 {{"type", "version_conflict_engine_exception"},
                  {"reason", "current version [" + std::to_string(current->second) +
                                 "] is higher than the one provided"}}}};
      } else if (refused_.contains(id)) {
        item = {{"status", 400},
                {"error", {{"type", "mapper_parsing_exception"}, {"reason", "no"}}}};
      } else {
        written_[index + "/" + id] = version;
      }
      if (refused_.contains(id)) {
        item = {{"status", 400}, {"error", {{"type", "mapper_parsing_exception"}, {"reason", ""}}}};
        written_.erase(index + "/" + id);
      }
      items.push_back({{"index", item}});
    }
    return Answer(
        200, ToJsonText({{"errors", !conflicts_.empty() || !refused_.empty()}, {"items", items}}));
  }

  std::string Sink(const std::string& index = "") const {
    return "opensearch+http://127.0.0.1:" + std::to_string(server_.port()) + index;
  }

  void AddLetter(const std::string& target, const std::string& id, const std::string& item,
                 bool transformed = true, int64_t since_ms = 0) {
    const auto letters = pipeline::OpenDeadLetters(file_, "r").value();
    const pipeline::Document document{
        .id = id, .routing = {}, .body = "{}", .position = id, .defect = {}};
    ASSERT_TRUE(letters->Add({.collection = target,
                              .target = target,
                              .item = item,
                              .document = document,
                              .reason = "refused",
                              .transformed = transformed,
                              .since_ms = since_ms}));
    ASSERT_TRUE(letters->Flush());
  }

  void Put(const char* kind, const std::string& key, const std::string& body) {
    const store::Change change = store::Change::Put(
        store::Record{.kind = kind, .queue = "r", .key = key, .body = body}, store::Due::Never());
    ASSERT_TRUE(store_->Write({&change, 1}));
  }

  void PutRun(const std::string& sink) {
    RunBody run;
    run.incarnation = "i";
    run.ready = true;
    run.sink = sink;
    run.since_ms = kSinceMs;
    Put(kRunKind, "r", run.ToJson());
  }

  Result<RedriveReport> Redrive(const std::string& sink, bool merge = false) {
    const RedriveRequest request{
        .letters = file_,
        .sink = sink,
        .store = [this]() -> Result<store::Store*> { return store_.get(); },
        .merge = merge};
    return RedriveDeadLetters(request, RealEnv(), {});
  }

  // A standalone migration of documents with these ids, in a file.
  Result<pipeline::Counts> Migrate(const std::vector<std::string>& ids) {
    std::ofstream file(folder_.At("books.jsonl"));
    for (const std::string& id : ids) file << R"({"id":")" << id << R"("})" << '\n';
    file.close();
    MUSTER_ASSIGN(const auto source,
                  pipeline::OpenSource("jsonl:" + folder_.At("books.jsonl?id=id"), RealEnv()));
    MUSTER_ASSIGN(const auto sink, pipeline::OpenSink(Sink(), RealEnv()));
    MUSTER_ASSIGN(const auto transforms, pipeline::ParseTransforms("", ""));
    MUSTER_ASSIGN(const auto letters, pipeline::OpenDeadLetters(file_, pipeline::kStandaloneRun));
    pipeline::Throttle throttle(RealEnv());
    pipeline::Pipeline pipeline{RealEnv(), *source, *transforms, *sink, *letters, throttle};
    MigrationObserver nothing;
    return MigrateAll(pipeline, {}, nothing, {});
  }

  // With a script that makes three documents of each.
  Result<RedriveReport> RedriveInThree(const std::string& letters) {
    const RedriveRequest request{
        .letters = letters,
        .sink = Sink(),
        .transforms =
            "- javascript: \"(doc, {id}) => ['', 'x', 'y'].map((part) =>"
            " ({id: id + part, source: doc}))\"",
        .transforms_file = "three.yaml",
        .store = [this]() -> Result<store::Store*> { return store_.get(); }};
    return RedriveDeadLetters(request, RealEnv(), {});
  }

  // The run has read ten documents of books, and `failed` of them are letters.
  void PutItem(int64_t failed) {
    const pipeline::Partition partition{.collection = "books"};
    ItemBody item = ItemBody::Of(partition);
    item.state = ItemBody::State::kDone;
    item.progress.counts = {.read = 10, .written = 10 - failed, .failed = failed};
    for (int64_t i = 0; i < failed; ++i) item.reasons.Add(std::to_string(i), "refused");
    Put(kWorkKind, ItemKey("r", NameOf(partition)), item.ToJson());
  }

  pipeline::Counts CountsOfRun() { return ReadTotals(*store_, "r").value().counts; }

  static int64_t Version(int64_t since_ms, int64_t rank) { return 2 * since_ms << 20 | rank << 8; }

  const testing::TemporaryFolder folder_;
  const std::string file_ = folder_.At("letters.jsonl");
  const std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
  std::mutex mutex_;
  std::map<std::string, int64_t> conflicts_;  // current versions, by id
  std::set<std::string> refused_;             // ids
  std::map<std::string, int64_t> written_;    // versions, by index/id
  HttpServer server_{[this](const HttpServerRequest& request) { return Serve(request); }};
};

TEST_F(RedriveTest, DocumentsHaveTheVersionsOfTheirRun) {
  PutRun(Sink());
  const pipeline::Partition first{.collection = "books", .begin = "0"};
  const pipeline::Partition second{.collection = "books", .begin = "7", .follows = true};
  for (const auto& one : {first, second}) {
    Put(kWorkKind, ItemKey("r", NameOf(one)), ItemBody::Of(one).ToJson());
  }
  AddLetter("books", "a", NameOf(first));
  AddLetter("books", "b", NameOf(second));
  const auto report = Redrive(Sink());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.written, 2);
  // Before those of all items of their kind. Followers have read later than others.
  EXPECT_EQ(written_.at("books/a"), Version(kSinceMs, 0));
  EXPECT_EQ(written_.at("books/b"), Version(kSinceMs, pipeline::kFirstFollowerRank));
}

TEST_F(RedriveTest, LaterVersionsInTheTargetAreLeftAlone) {
  PutRun(Sink());
  for (const char* id : {"a", "b", "c"}) AddLetter("books", id, "books__0__0");
  conflicts_["a"] = Version(kSinceMs + 5, 1);  // by a later migration
  conflicts_["b"] = Version(kSinceMs, 1);      // by the run itself
  const auto report = Redrive(Sink());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.written, 1);
  EXPECT_EQ(report->counts.skipped, 2);
  EXPECT_EQ(report->counts.failed, 0);
}

TEST_F(RedriveTest, LettersFromBeforeAResetAreNoneOfTheNewStarts) {
  PutRun(Sink());
  PutItem(1);
  AddLetter("books", "a", "books__0__0", true, kSinceMs);
  AddLetter("books", "b", "books__0__0", true, kSinceMs);
  ASSERT_TRUE(ResetRun(*store_, "r", /*force=*/false, RealEnv()));
  const auto reset = store_->Get(kRunKind, "r").value();
  const int64_t since_ms = RunBody::FromJson(reset->body)->since_ms;
  PutItem(1);
  AddLetter("books", "b", "books__0__0", true, since_ms);
  // A copy of an older file.
  AddLetter("books", "b", "books__0__0", true, kSinceMs);

  const auto report = Redrive(Sink());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.written, 1);
  EXPECT_EQ(report->former, 1);
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_NE(report->notes[0].find("1 letter is left out"), std::string::npos) << report->notes[0];
  EXPECT_FALSE(written_.contains("books/a"));
  EXPECT_EQ(written_.at("books/b"), Version(since_ms, 0));
  EXPECT_EQ(CountsOfRun(), (pipeline::Counts{.read = 10, .written = 10}));
}

TEST_F(RedriveTest, LettersOfTheIncarnationBeforeAreStillTheRuns) {
  RunBody run;
  run.incarnation = "later";
  run.adopts = true;
  run.ready = true;
  run.sink = Sink();
  run.begun_ms = kSinceMs;
  run.since_ms = kSinceMs + 5;
  Put(kRunKind, "r", run.ToJson());
  PutItem(1);
  AddLetter("books", "a", "books__0__0", true, kSinceMs);
  const auto report = Redrive(Sink());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.written, 1);
  EXPECT_EQ(report->former, 0);
  EXPECT_EQ(CountsOfRun().failed, 0);
}

TEST_F(RedriveTest, LettersOfAStandaloneMigrationHaveItsVersions) {
  refused_ = {"b", "c"};
  const auto counts = Migrate({"a", "b", "c"});
  ASSERT_TRUE(counts) << counts.error().ToString();
  EXPECT_EQ(counts->failed, 2);
  const int64_t version = written_.at("books/a");
  ASSERT_GT(version, 0);
  const int64_t since_ms = version >> 21;

  refused_ = {"b"};
  conflicts_["c"] = Version(since_ms + 5, 1);  // by a later migration
  const auto report = Redrive(Sink());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.failed, 1);
  EXPECT_EQ(report->counts.skipped, 1);
  // Also of those that failed again.
  refused_.clear();
  ASSERT_TRUE(RedriveDeadLetters({.letters = AgainPathOf(file_), .sink = Sink()}, RealEnv(), {}));
  EXPECT_EQ(written_.at("books/b"), Version(since_ms, 0));
}

// Letters of migrations that are in no store, into a table without a key.
class StandaloneRedriveTest : public RedriveTest {
 protected:
  void SetUp() override { Exec("CREATE TABLE t (n INTEGER)"); }

  void Exec(const std::string& sql, const std::string& file = "target.db") {
    const auto db =
        sql::SqliteDb::Open(folder_.At(file), sql::SqliteDb::Mode::kCreate, kBusy).value();
    ASSERT_TRUE(db->Execute(sql));
  }
  int64_t Rows(const std::string& file = "target.db") {
    const auto db =
        sql::SqliteDb::Open(folder_.At(file), sql::SqliteDb::Mode::kReadOnly, kBusy).value();
    return db->QueryInt("SELECT count(*) FROM t").value();
  }

  void AddOf(int64_t since_ms, const std::vector<std::string>& positions) {
    const auto letters = pipeline::OpenDeadLetters(file_, pipeline::kStandaloneRun).value();
    for (const std::string& position : positions) {
      const pipeline::Document document{
          .id = {}, .routing = {}, .body = R"({"n":1})", .position = position, .defect = {}};
      ASSERT_TRUE(letters->Add({.collection = "t",
                                .target = "t",
                                .item = "t__0__0",
                                .document = document,
                                .reason = "refused",
                                .transformed = true,
                                .since_ms = since_ms}));
    }
    ASSERT_TRUE(letters->Flush());
  }

  Result<RedriveReport> Into(const std::string& sink, const std::string& letters,
                             bool all = false) {
    return RedriveDeadLetters({.letters = letters, .sink = sink, .all = all}, RealEnv(), {});
  }
  Result<RedriveReport> Again(bool all = false) { return Into(sink_, file_, all); }

  const std::string sink_ = "sqlite:" + folder_.At("target.db");
};

TEST_F(StandaloneRedriveTest, SecondRedriveWritesNothing) {
  AddOf(kSinceMs, {"a", "b"});
  const auto first = Again();
  ASSERT_TRUE(first) << first.error().ToString();
  EXPECT_EQ(first->counts.written, 2);
  EXPECT_EQ(first->record, file_ + ".redriven");
  EXPECT_TRUE(first->recorded.empty());
  const auto second = Again();
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(second->counts.read, 0);
  EXPECT_EQ(second->earlier, 2);
  EXPECT_EQ(Rows(), 2);
  EXPECT_EQ(Again(/*all=*/true)->counts.written, 2);
  EXPECT_EQ(Rows(), 4);
}

TEST_F(StandaloneRedriveTest, LettersFromBeforeStartsWereRecordedToo) {
  AddOf(0, {"a", "b"});
  ASSERT_TRUE(Again());
  EXPECT_EQ(Again()->earlier, 2);
  EXPECT_EQ(Rows(), 2);
}

TEST_F(StandaloneRedriveTest, LaterMigrationsLettersAreNotSettled) {
  AddOf(kSinceMs, {"a", "b"});
  ASSERT_TRUE(Again());
  AddOf(kSinceMs + 1, {"b", "c"});
  const auto report = Again();
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.written, 2);
  EXPECT_EQ(report->earlier, 1);
}

TEST_F(StandaloneRedriveTest, AnotherSinkGetsThemAsWell) {
  AddOf(kSinceMs, {"a"});
  ASSERT_TRUE(Again());
  Exec("CREATE TABLE t (n INTEGER)", "other.db");
  EXPECT_EQ(Into("sqlite:" + folder_.At("other.db"), file_)->counts.written, 1);
  EXPECT_EQ(Rows("other.db"), 1);
}

TEST_F(StandaloneRedriveTest, HowTheSinkTakesNumbersMakesItNoOther) {
  Exec("DROP TABLE t; CREATE TABLE t (n INTEGER DEFAULT 1, _id TEXT)");
  AddOf(kSinceMs, {"a"});
  ASSERT_TRUE(Again());
  EXPECT_EQ(Into(sink_ + "?misfits=convert", file_)->earlier, 1);
  AddLetter("t", "x", "t__0__0", true, kSinceMs);
  PutRun(sink_ + "?misfits=refuse");
  const auto report = Redrive(sink_ + "?misfits=convert");
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->recorded, std::vector<std::string>{"r"});
  EXPECT_TRUE(report->notes.empty()) << report->notes.front();
}

TEST_F(StandaloneRedriveTest, SinkRefusesWhatACopyOfTheFileHasWritten) {
  AddOf(kSinceMs, {"a"});
  ASSERT_TRUE(Again());
  const std::string copy = folder_.At("copy.jsonl");
  std::filesystem::copy_file(file_, copy);
  for (const auto& [sink, letters] :
       {std::pair(sink_, copy), std::pair("sqlite:" + folder_.At("./target.db"), file_)}) {
    const auto refused = Into(sink, letters);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kIncompatible);
    EXPECT_NE(refused.error().hint.find("--all"), std::string::npos);
    EXPECT_EQ(Rows(), 1);
  }
  EXPECT_EQ(Into(sink_, copy, /*all=*/true)->counts.written, 1);
  EXPECT_EQ(Into(sink_, copy)->earlier, 1);
  EXPECT_EQ(Rows(), 2);
}

TEST_F(StandaloneRedriveTest, WhatFailedAgainIsTakenFromEitherFile) {
  Exec("DROP TABLE t; CREATE TABLE t (n INTEGER CHECK (n <> 1))");
  AddOf(kSinceMs, {"a", "b"});
  EXPECT_EQ(Again()->counts.failed, 2);
  Exec("DROP TABLE t; CREATE TABLE t (n INTEGER)");
  EXPECT_EQ(Into(sink_, AgainPathOf(file_))->counts.written, 2);
  EXPECT_EQ(Again()->earlier, 2);
  EXPECT_EQ(Rows(), 2);
}

TEST_F(StandaloneRedriveTest, NothingIsRecordedIfNothingCanBeWritten) {
  AddOf(kSinceMs, {"a"});
  EXPECT_FALSE(Into("nowhere:", file_));
  AddLetter("t", "x", "t__0__0", /*transformed=*/false);
  EXPECT_FALSE(Again());
  EXPECT_FALSE(std::filesystem::exists(file_ + ".redriven"));
}

TEST_F(StandaloneRedriveTest, RunThatTheStoreGetsLaterDoesNotRepeatThem) {
  AddLetter("t", "x", "t__0__0", true, kSinceMs);
  Exec("DROP TABLE t; CREATE TABLE t (n INTEGER DEFAULT 1, _id TEXT)");
  ASSERT_EQ(Into(sink_, file_)->counts.written, 1);
  PutRun(sink_);
  const auto report = Redrive(sink_);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->earlier, 1);
}

TEST_F(RedriveTest, LettersOfSeveralTargetsAreNotMergedUnlessTheirRunDidSo) {
  for (const char* target : {"books", "authors"})
    AddLetter(target, "a", target + std::string("__0__0"));
  const auto refused = Redrive(Sink("/one"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_NE(refused.error().message.find("books"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find("--merge"), std::string::npos);
  EXPECT_TRUE(written_.empty());
  // The run went somewhere else.
  PutRun(Sink());
  EXPECT_EQ(Redrive(Sink("/one")).error().code, Code::kConflict);
  EXPECT_TRUE(written_.empty());

  ASSERT_TRUE(Redrive(Sink("/one"), /*merge=*/true));
  EXPECT_EQ(written_.size(), 1U);
  const auto apart = Redrive(Sink());
  ASSERT_TRUE(apart) << apart.error().ToString();
  EXPECT_EQ(written_.size(), 3U);
}

TEST_F(RedriveTest, FailedPartOfADocumentIsASeparateLetter) {
  PutRun(Sink());
  PutItem(2);
  for (const char* id : {"a", "b"}) AddLetter("books", id, "books__0__0", /*transformed=*/false);
  refused_ = {"a", "ay"};
  const auto report = RedriveInThree(file_);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->counts.read, 2);
  EXPECT_EQ(report->counts.added, 4);
  EXPECT_EQ(report->counts.written, 4);
  EXPECT_EQ(report->counts.failed, 2);
  EXPECT_FALSE(report->IsAll());
  EXPECT_EQ(CountsOfRun(), (pipeline::Counts{.read = 10, .written = 12, .failed = 2, .added = 4}));

  // What they were made of is settled, although one of them has its id.
  written_.clear();
  const auto again = RedriveInThree(file_);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->earlier, 2);
  EXPECT_TRUE(written_.empty());

  // One fails again: that is still the same letter.
  refused_ = {"a"};
  const auto parts = RedriveInThree(AgainPathOf(file_));
  ASSERT_TRUE(parts) << parts.error().ToString();
  EXPECT_EQ(parts->counts.written, 1);
  EXPECT_EQ(parts->counts.failed, 1);
  EXPECT_EQ(parts->counts.added, 0) << "they were transformed before";
  EXPECT_EQ(CountsOfRun(), (pipeline::Counts{.read = 10, .written = 13, .failed = 1, .added = 4}));
  refused_.clear();
  ASSERT_TRUE(RedriveInThree(AgainPathOf(AgainPathOf(file_))));
  EXPECT_EQ(written_.size(), 2U);
  EXPECT_EQ(CountsOfRun(), (pipeline::Counts{.read = 10, .written = 14, .failed = 0, .added = 4}));
  ASSERT_TRUE(RedriveInThree(AgainPathOf(file_)));
  EXPECT_EQ(CountsOfRun().written, 14);
}

TEST_F(RedriveTest, ReasonsAreListedOnlyWhileDocumentsAreFailed) {
  PutRun(Sink());
  PutItem(2);
  for (const char* id : {"a", "b"}) AddLetter("books", id, "books__0__0");
  refused_ = {"a"};
  ASSERT_TRUE(Redrive(Sink()));
  EXPECT_EQ(ReadTotals(*store_, "r")->counts.failed, 1);
  EXPECT_EQ(ReadTotals(*store_, "r")->reasons.at(0).count, 1);
  EXPECT_EQ(ReadItem(*store_, "r", "books__0__0")->reasons.size(), 1U);
  refused_.clear();
  ASSERT_TRUE(Redrive(Sink()));
  EXPECT_EQ(ReadTotals(*store_, "r")->counts.failed, 0);
  EXPECT_TRUE(ReadTotals(*store_, "r")->reasons.empty());
  EXPECT_TRUE(ReadItem(*store_, "r", "books__0__0")->reasons.empty());
  EXPECT_TRUE(ListItems(*store_, "r", "", store::kMaxBatch)->at(0).reasons.empty());
}

TEST_F(RedriveTest, LettersGoWhereTheirRunMergedItsCollections) {
  PutRun(Sink("/one"));
  AddLetter("books", "a", "books__0__0");
  AddLetter("authors", "b", "authors__0__0");
  const auto report = Redrive(Sink("/one"));
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(written_.size(), 2U);
}

}  // namespace
}  // namespace muster::work
