#include "muster/migrate.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "pipeline/flow/document_hash.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/wrappers.h"
#include "sql/sqlite.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

using Kind = VerifyDifference::Kind;

DocumentHash HashOf(const std::string& body) {
  const auto hash = HashDocument(body);
  EXPECT_TRUE(hash) << body;
  return hash ? *hash : DocumentHash{};
}

TEST(DocumentHash, DependsOnContentNotOnFormatting) {
  const DocumentHash hash = HashOf(R"({"a":1,"b":[1,"x"],"c":{"d":true},"e":-120})");
  for (const char* same : {
           R"({ "b" : [ 1.0, "\u0078" ], "c": {"d":"true"}, "a":"1", "e":-1.2e2 })",
           R"({"a":10e-1,"b":[1,"x"],"c":{"d":true,"f":null},"e":-120.00,"g":null})",
       }) {
    EXPECT_EQ(HashOf(same), hash) << same;
  }
  for (const char* other : {
           R"({"a":2,"b":[1,"x"],"c":{"d":true},"e":-120})",
           R"({"a":1,"b":["x",1],"c":{"d":true},"e":-120})",
           R"({"a":1,"b":[1,"x"],"c":{"d":false},"e":-120})",
           R"({"a":1,"b":[1,"x"],"c":{"d":true},"e":120})",
           R"({"a":1,"b":[1,"x",null],"c":{"d":true},"e":-120})",
           R"({"b":1,"a":[1,"x"],"c":{"d":true},"e":-120})",
           R"({"a":"01","b":[1,"x"],"c":{"d":true},"e":-120})",
       }) {
    EXPECT_NE(HashOf(other), hash) << other;
  }
  EXPECT_NE(HashOf(R"({"n":12345678901234567890123})"), HashOf(R"({"n":12345678901234567890124})"));
  EXPECT_FALSE(HashDocument("[1]"));
  EXPECT_FALSE(HashDocument("{"));
}

TEST(DocumentHash, ComparesTypesWhereBothSidesKeepThem) {
  const auto exact = [](const std::string& body) {
    return HashDocument(body, HashTypes::kCompared).value();
  };
  EXPECT_EQ(exact(R"({"a":1.0,"b":"x"})"), exact(R"({"b":"x","a":1})"));
  EXPECT_NE(exact(R"({"a":1})"), exact(R"({"a":"1"})"));
  EXPECT_NE(exact(R"({"a":[true]})"), exact(R"({"a":["true"]})"));
  EXPECT_NE(exact(R"({"a":null})"), exact("{}"));
  EXPECT_NE(exact(R"({"a":null})"), exact(R"({"a":"null"})"));
}

VerifyObserver nothing;

class Watcher final : public VerifyObserver {
 public:
  std::string state;
  int64_t seen = 0;
  void Advanced(int64_t documents) override { seen = documents; }
  Status Save(const std::function<std::string()>& text) override {
    state = text();
    return {};
  }
};

class VerifyTest : public ::testing::Test {
 protected:
  static std::string Id(int number) { return "id" + std::to_string(number); }
  static void Fill(MemorySource& source, int first, int last, bool ids = true) {
    for (int i = first; i < last; ++i) {
      source.Add("c", {.id = ids ? Id(i) : "", .body = "{\"n\":" + std::to_string(i) + "}"});
    }
  }
  static VerifyReport Verify(MemorySource& source, MemorySource& target, bool checksums) {
    const VerifyOptions options{.checksums = checksums};
    auto report = VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {});
    EXPECT_TRUE(report) << report.error().ToString();
    return report ? *report : VerifyReport{};
  }
};

// Counts what is read, and fails at one of the reads.
class Interrupted final : public SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    if (++reads == fails_at) return Error{Code::kUnavailable, "gone"};
    return SourceWrapper::Read(partition, position, std::move(stop));
  }
  int reads = 0;
  int fails_at = 0;
};

TEST_F(VerifyTest, AComparisonIsContinuedWhereItEnded) {
  MemorySource source(10);
  MemorySource target(7);
  Fill(source, 0, 100);
  Fill(target, 1, 101);
  source.Add("c", {.id = "bad", .body = "", .defect = "no JSON"});
  const VerifyReport whole = Verify(source, target, true);
  const auto parts = static_cast<int>(whole.source.size() + whole.target.size());
  for (const int cut : {1, 5, static_cast<int>(whole.source.size()) + 3}) {
    VerifyOptions options{.checksums = true};
    Watcher watcher;
    Interrupted left(source);
    Interrupted right(target);
    (cut < static_cast<int>(whole.source.size()) ? left : right).fails_at =
        cut < static_cast<int>(whole.source.size()) ? cut : 3;
    ASSERT_FALSE(VerifyCollection({left, "c"}, {right, "c"}, options, watcher, {}));
    const int done = left.reads + right.reads - 1;
    left.fails_at = right.fails_at = left.reads = right.reads = 0;
    options.state = watcher.state;
    watcher.seen = 0;
    const auto report = VerifyCollection({left, "c"}, {right, "c"}, options, watcher, {});
    ASSERT_TRUE(report) << report.error().ToString();
    // Differences are looked for in all of it.
    EXPECT_EQ(left.reads + right.reads, 2 * parts - done);
    EXPECT_EQ(report->SourceDocuments(), whole.SourceDocuments());
    EXPECT_EQ(report->TargetDocuments(), whole.TargetDocuments());
    EXPECT_EQ(report->differences, whole.differences);
    EXPECT_EQ(report->named.size(), whole.named.size());
    EXPECT_EQ(report->Unreadable(), 1);
    if (done > 0) {
      EXPECT_GT(watcher.seen, 0);
    }
  }
}

// Requests a stop once so many documents were read.
class Stopper final : public VerifyObserver {
 public:
  explicit Stopper(int64_t after) : after_(after) {}
  void Advanced(int64_t documents) override {
    seen = documents;
    if (documents >= after_) stop.request_stop();
  }
  std::stop_source stop;
  int64_t seen = 0;

 private:
  const int64_t after_;
};

TEST_F(VerifyTest, AStopIsNoticedWithinAThousandDocuments) {
  MemorySource source(10'000);
  Fill(source, 0, 5'000);
  MemorySource target(10'000);
  Fill(target, 0, 4'999);
  for (const int64_t after : {int64_t{2'000}, int64_t{8'000}}) {
    Stopper stopper(after);
    const auto report = VerifyCollection({source, "c"}, {target, "c"}, {.checksums = true}, stopper,
                                         stopper.stop.get_token());
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Code::kCancelled);
    EXPECT_EQ(stopper.seen, after);
  }
}

// Its last partition has what was written since the others were listed.
class Changing final : public SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(std::vector<Partition> partitions, SourceWrapper::Partitions(collection));
    partitions.back().follows = true;
    return partitions;
  }
};

TEST_F(VerifyTest, DocumentsThatChangeMeanwhileAreSaidToCountTwice) {
  MemorySource source(10);
  MemorySource target(7);
  Fill(source, 0, 20);
  Fill(target, 0, 20);
  Changing changing(source);
  for (const bool changes : {false, true}) {
    pipeline::Source& side = changes ? static_cast<pipeline::Source&>(changing) : source;
    ::testing::internal::CaptureStderr();
    const auto report = VerifyCollection({side, "c"}, {target, "c"}, {}, nothing, {});
    const std::string said = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_EQ(said.find("collection=c documents=10") != std::string::npos, changes) << said;
  }
}

// Among these, some are added up together, in one of 4096 buckets.
TEST_F(VerifyTest, DocumentsWhoseIdsAreExchangedAreChanged) {
  MemorySource source(10);
  MemorySource target(7);
  std::map<uint64_t, int> buckets;
  std::pair<int, int> together;
  for (int i = 0; together.second == 0; ++i) {
    const auto [other, is_new] = buckets.emplace(HashBytes(Id(i)).low % 4096, i);
    if (!is_new) together = {other->second, i};
  }
  const auto [one, other] = together;
  source.Add("c", {.id = Id(one), .body = R"({"n":1})"});
  source.Add("c", {.id = Id(other), .body = R"({"n":2})"});
  target.Add("c", {.id = Id(one), .body = R"({"n":2})"});
  target.Add("c", {.id = Id(other), .body = R"({"n":1})"});
  const VerifyReport report = Verify(source, target, true);
  EXPECT_FALSE(report.Equal());
  EXPECT_EQ(report.differences, 2);
}

std::vector<std::string> IdsOf(const Batch& batch) {
  std::vector<std::string> ids;
  for (const Document& document : batch.documents) {
    EXPECT_TRUE(document.deleted);
    ids.push_back(std::string(document.id) + "/" + std::string(document.routing));
  }
  return ids;
}

TEST_F(VerifyTest, ExtraDocumentsAreDeleted) {
  MemorySource source(10);
  MemorySource target(7);
  Fill(source, 0, 50);
  Fill(target, 0, 50);
  target.Add("c", {.id = "more", .body = "{}", .routing = "here"});
  target.Add("c", {.id = "most", .body = "{}"});
  std::vector<std::string> deleted;
  const VerifyOptions options{.checksums = true, .delete_extra = [&](const Batch& extra) {
                                deleted = IdsOf(extra);
                                return Status();
                              }};
  const auto report = VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {});
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(deleted, (std::vector<std::string>{"more/here", "most/"}));
  EXPECT_TRUE(report->Equal());
  EXPECT_EQ(report->deleted, 2);
  EXPECT_EQ(report->differences, 0);
}

// Shows a document only from a given read of the whole on.
class Late final : public SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    ++looks;
    return SourceWrapper::Partitions(looks < shown_from ? "c" : collection + " later");
  }
  int looks = 0;
  int shown_from = 3;
};

TEST_F(VerifyTest, ADocumentThatIsInTheSourceByNowIsNotDeleted) {
  MemorySource both(10);
  MemorySource target(7);
  Fill(both, 0, 50);
  Fill(target, 0, 51);
  for (int i = 0; i < 51; ++i) {
    both.Add("c later", {.id = Id(i), .body = "{\"n\":" + std::to_string(i) + "}"});
  }
  Late source(both);
  const VerifyOptions options{.checksums = true, .delete_extra = [](const Batch& /*extra*/) {
                                ADD_FAILURE() << "nothing is extra";
                                return Status();
                              }};
  const auto report = VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {});
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_FALSE(report->Equal());
  EXPECT_EQ(source.looks, 3);
}

TEST_F(VerifyTest, NothingIsDeletedByAComparisonThatCannotTell) {
  const VerifyOptions options{.checksums = true, .delete_extra = [](const Batch& /*extra*/) {
                                ADD_FAILURE() << "it cannot be known to be extra";
                                return Status();
                              }};
  const auto code = [&](MemorySource& source, MemorySource& target) {
    const auto report = VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {});
    EXPECT_FALSE(report);
    return report ? Code::kInvalid : report.error().code;
  };
  MemorySource target(7);
  Fill(target, 0, 20);
  MemorySource unreadable(10);
  Fill(unreadable, 0, 19);
  unreadable.Add("c", {.id = Id(19), .body = "", .defect = "no JSON"});
  EXPECT_EQ(code(unreadable, target), Code::kIncompatible);
  MemorySource without_ids(10);
  Fill(without_ids, 0, 19, false);
  EXPECT_EQ(code(without_ids, target), Code::kIncompatible);
  MemorySource small(10);
  Fill(small, 0, 9);
  EXPECT_EQ(code(small, target), Code::kConflict);
}

TEST_F(VerifyTest, WhatChangedSinceIsReadAgain) {
  MemorySource source(10);
  Fill(source, 0, 30);
  VerifyOptions options{.checksums = true};
  Watcher watcher;
  ASSERT_TRUE(VerifyCollection({source, "c"}, {source, "c"}, options, watcher, {}));
  options.state = watcher.state;
  MemorySource other(9);
  Fill(other, 0, 30);
  Interrupted left(source);
  Interrupted right(other);
  ASSERT_TRUE(VerifyCollection({left, "c"}, {right, "c"}, options, nothing, {})->Equal());
  EXPECT_EQ(left.reads, 0);
  EXPECT_EQ(right.reads, 4);
}

TEST_F(VerifyTest, ScriptsMayDropMultiplyAndRenameDocuments) {
  const auto plan = ParseTransforms(
                        "- javascript: |\n"
                        "    (doc, meta) => doc.n % 3 === 0 ? undefined : doc.n % 3 === 1 ? doc :\n"
                        "      ['x', 'y'].map((part) => ({id: meta.id + part, source: {part}}))",
                        "t")
                        .value();
  MemorySource source(4);
  MemorySource target(100);
  Fill(source, 0, 12);
  for (int i = 0; i < 12; ++i) {
    if (i % 3 == 1) target.Add("c", {.id = Id(i), .body = "{\"n\":" + std::to_string(i) + "}"});
    if (i % 3 != 2) continue;
    for (const char* part : {"x", "y"}) {
      target.Add("c", {.id = Id(i) + part, .body = R"({"part":")" + std::string(part) + "\"}"});
    }
  }
  const VerifyOptions options{.checksums = true, .transforms = plan.get()};
  const auto report = VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {});
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(report->Equal());
  EXPECT_EQ(report->SourceDocuments(), 12);

  MemorySource wrong(100);
  for (int i = 0; i < 12; ++i) {
    if (i % 3 == 1) wrong.Add("c", {.id = Id(i), .body = "{\"n\":" + std::to_string(i) + "}"});
    if (i % 3 != 2) continue;
    if (i != 5) wrong.Add("c", {.id = Id(i) + "x", .body = R"({"part":"x"})"});
    wrong.Add("c", {.id = Id(i) + "y", .body = i == 8 ? R"({"part":"z"})" : R"({"part":"y"})"});
  }
  wrong.Add("c", {.id = Id(3), .body = R"({"n":3})"});
  const auto differs = VerifyCollection({source, "c"}, {wrong, "c"}, options, nothing, {});
  ASSERT_TRUE(differs) << differs.error().ToString();
  std::map<std::string, Kind> named;
  for (const VerifyDifference& one : differs->named) named[one.id] = one.kind;
  EXPECT_EQ(named, (std::map<std::string, Kind>{{Id(3), Kind::kExtra},
                                                {Id(5) + "x", Kind::kMissing},
                                                {Id(8) + "y", Kind::kChanged}}));
}

TEST_F(VerifyTest, AScriptHidesNoRoundedNumber) {
  MemorySource source(10);
  MemorySource target(10);
  MemorySource rounded(10);
  source.Add("c", {.id = "1", .body = R"({"n":9007199254740993,"x":1.0})"});
  target.Add("c", {.id = "1", .body = R"({"m":9007199254740993,"x":1.0})"});
  rounded.Add("c", {.id = "1", .body = R"({"m":9007199254740992,"x":1})"});
  const auto plan =
      ParseTransforms("- javascript: '({n, ...rest}) => ({m: n, ...rest})'", "t").value();
  const VerifyOptions options{.checksums = true, .transforms = plan.get()};
  EXPECT_TRUE(VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {})->differences ==
              0);
  EXPECT_EQ(VerifyCollection({source, "c"}, {rounded, "c"}, options, nothing, {})->differences, 1);
}

TEST_F(VerifyTest, OrderAndPartitionsDoNotMatter) {
  MemorySource source(10);
  MemorySource target(33);
  Fill(source, 0, 100);
  Fill(target, 50, 100);
  Fill(target, 0, 50);
  for (const bool checksums : {false, true}) {
    const VerifyReport report = Verify(source, target, checksums);
    EXPECT_TRUE(report.Equal());
    EXPECT_EQ(report.SourceDocuments(), 100);
    EXPECT_EQ(report.source.size(), 10);
    EXPECT_EQ(report.target.size(), 4);
    EXPECT_EQ(report.source[3].documents, 10);
  }
}

TEST_F(VerifyTest, MissingExtraAndChangedDocumentsAreNamed) {
  MemorySource source(10);
  MemorySource target(1000);
  Fill(source, 0, 100);
  Fill(target, 1, 57);
  target.Add("c", {.id = Id(57), .body = R"({"n":"other"})"});
  Fill(target, 58, 100);
  target.Add("c", {.id = "new", .body = "{}"});
  EXPECT_TRUE(Verify(source, target, false).Equal()) << "the numbers are the same";
  const VerifyReport report = Verify(source, target, true);
  EXPECT_FALSE(report.Equal());
  EXPECT_EQ(report.differences, 3);
  ASSERT_EQ(report.named.size(), 3);
  const auto& [changed, extra, missing] =
      std::tie(report.named[0], report.named[1], report.named[2]);
  EXPECT_EQ(changed.kind, Kind::kChanged);
  EXPECT_EQ(changed.id, Id(57));
  EXPECT_EQ(changed.shard, 5);
  EXPECT_EQ(extra.kind, Kind::kExtra);
  EXPECT_EQ(extra.id, "new");
  EXPECT_EQ(missing.kind, Kind::kMissing);
  EXPECT_EQ(missing.id, Id(0));
}

TEST_F(VerifyTest, WhatFailsInATransformWasNotMigrated) {
  MemorySource source(10);
  MemorySource target(10);
  source.Add("c", {.id = "1", .body = R"({"n":1})"});
  source.Add("c", {.id = "2", .body = R"({"n":"x"})"});
  target.Add("c", {.id = "1", .body = R"({"n":1})"});
  const auto plan = ParseTransforms("- cast: {n: number}", "t").value();
  for (const bool checksums : {false, true}) {
    const VerifyOptions options{.checksums = checksums, .transforms = plan.get()};
    const auto report =
        VerifyCollection({source, "c"}, {target, "c"}, options, nothing, {}).value();
    EXPECT_FALSE(report.Equal());
    EXPECT_EQ(report.SourceDocuments(), 2);
    EXPECT_EQ(report.Unreadable(), 1);
    ASSERT_EQ(report.named.size(), 1);
    EXPECT_EQ(report.named[0].kind, Kind::kUnreadable);
    EXPECT_EQ(report.named[0].id, "2");
  }
}

TEST_F(VerifyTest, WithoutIdsOnOneSideContentsAreComparedAlsoWhenTheyRepeat) {
  MemorySource source(10);
  MemorySource target(10);
  Fill(source, 0, 20, false);
  Fill(source, 5, 6, false);
  Fill(target, 0, 20, true);
  Fill(target, 5, 6, true);
  EXPECT_TRUE(Verify(source, target, true).Equal());
  Fill(source, 7, 8, false);
  Fill(target, 8, 9, true);
  const VerifyReport report = Verify(source, target, true);
  EXPECT_EQ(report.differences, 2);
  EXPECT_FALSE(report.Equal());
}

// The differences between tables t and u of an SQLite file.
class VerifyJsonNullTest : public VerifyTest {
 protected:
  void Execute(const std::string& sql) const {
    auto db = sql::SqliteDb::Open(folder_.At("f.db"), sql::SqliteDb::Mode::kCreate,
                                  std::chrono::seconds(10));
    ASSERT_TRUE(db && (*db)->Execute(sql)) << sql;
  }
  std::string Url(const std::string& table) const {
    return "sqlite:" + folder_.At("f.db") + "#" + table;
  }
  void CopyToU() const {
    auto source = OpenSource(Url("t"), RealEnv()).value();
    auto reader = source->Read(source->Partitions("t").value().at(0), "", {}).value();
    Batch batch;
    while (auto next = reader->Next().value()) batch.Add(*next);
    Fence fence;
    fence.run = fence.incarnation = fence.item = "i";
    fence.epoch = 1;
    auto writer = OpenSink(Url("u"), RealEnv()).value()->Open("u", fence).value();
    const auto refused = writer->Write(batch, {}, {});
    EXPECT_TRUE(refused && refused->empty());
  }
  int64_t Differences() const {
    auto source = OpenSource(Url("t"), RealEnv()).value();
    auto target = OpenSource(Url("u"), RealEnv()).value();
    const VerifyOptions options{.checksums = true};
    return VerifyCollection({*source, "t"}, {*target, "u"}, options, nothing, {})
        .value()
        .differences;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(VerifyJsonNullTest, ANullThatTheTargetCannotTellApartIsNoDifference) {
  Execute(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a JSON_TEXT, b JSON_TEXT, c JSON_TEXT);"
      "INSERT INTO t VALUES (1,NULL,NULL,NULL), (2,'null',NULL,NULL), (3,NULL,'null',NULL),"
      " (4,NULL,NULL,'null'), (5,'null','null','null');"
      "CREATE TABLE u (id INTEGER PRIMARY KEY, a JSON_TEXT NOT NULL, b TEXT, c JSON_TEXT)");
  CopyToU();
  EXPECT_EQ(Differences(), 0);
  Execute("UPDATE u SET c = 'null' WHERE id = 2");
  EXPECT_EQ(Differences(), 1);
}

TEST_F(VerifyJsonNullTest, JsonNullInsteadOfNullIsADifferenceAlsoInAnotherColumn) {
  const std::string columns = " (id INTEGER PRIMARY KEY, a JSON_TEXT, b JSON_TEXT);";
  Execute("CREATE TABLE t" + columns + "CREATE TABLE u" + columns +
          "INSERT INTO t VALUES (1,NULL,NULL), (2,'null',NULL), (3,'null','null')");
  CopyToU();
  EXPECT_EQ(Differences(), 0);
  Execute("UPDATE u SET a = 'null' WHERE id = 1; UPDATE u SET a = NULL, b = 'null' WHERE id = 2");
  EXPECT_EQ(Differences(), 2);
}

TEST_F(VerifyTest, MoreDifferencesThanAreNamedAreCounted) {
  MemorySource source(1000);
  MemorySource target(1000);
  Fill(source, 0, 500);
  Fill(target, 0, 1);
  const VerifyReport report = Verify(source, target, true);
  EXPECT_EQ(report.differences, 499);
  EXPECT_EQ(report.named.size(), 100);
}

}  // namespace
}  // namespace muster::pipeline
