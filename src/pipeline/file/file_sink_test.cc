#include "pipeline/file/file_sink.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/file/byte_stream.h"
#include "pipeline/flow/shards.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

class FileSinkTest : public ::testing::Test {
 protected:
  std::unique_ptr<Sink> Open(const std::string& url) {
    auto sink = OpenSink(url, RealEnv());
    EXPECT_TRUE(sink) << sink.error().ToString();
    return *std::move(sink);
  }

  static Fence FenceOf(const std::string& item, int64_t epoch) {
    Fence fence{.run = "run", .incarnation = "one", .item = "run/" + item, .epoch = epoch};
    return fence;
  }

  static std::unique_ptr<Writer> OpenItem(Sink& sink, const std::string& item, int64_t epoch) {
    auto writer = sink.Open("orders", FenceOf(item, epoch));
    EXPECT_TRUE(writer) << writer.error().ToString();
    return *std::move(writer);
  }

  static Batch BatchOf(const std::vector<std::string>& bodies) {
    Batch batch;
    for (const std::string& body : bodies) {
      batch.Add({.id = "i", .routing = "r", .body = body, .position = {}, .defect = {}});
    }
    return batch;
  }

  static Progress At(const std::string& position, int64_t written) {
    return {.position = position, .counts = {.read = written, .written = written}};
  }

  // Writes, expecting no refusals.
  static void Write(Writer& writer, const std::vector<std::string>& bodies, const Progress& after) {
    const auto refused = writer.Write(BatchOf(bodies), after, {});
    ASSERT_TRUE(refused) << refused.error().ToString();
    EXPECT_TRUE(refused->empty());
  }

  std::string Out() const { return folder_.path() + "/out"; }

  testing::TemporaryFolder folder_;
};

TEST_F(FileSinkTest, FinishedItemIsAFileInItsCollectionsFolder) {
  const auto sink = Open("jsonl:" + Out());
  ASSERT_TRUE(sink->Prepare({.name = "orders"}, false));
  const auto writer = OpenItem(*sink, "orders__0__0", 1);
  EXPECT_EQ(*writer->Known(), Progress{});
  Write(*writer, {"{\"a\":1}", "{\n \"b\": 2\r\n}"}, At("2", 2));
  EXPECT_FALSE(folder_.Has("out/orders/orders__0__0.jsonl"));
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(folder_.Read("out/orders/orders__0__0.jsonl"), "{\"a\":1}\n{  \"b\": 2  }\n");
  ASSERT_TRUE(writer->Finish()) << "once more changes nothing";
  EXPECT_EQ(folder_.Read("out/orders/orders__0__0.jsonl"), "{\"a\":1}\n{  \"b\": 2  }\n");
}

TEST_F(FileSinkTest, AnItemWithoutDocumentsIsAnEmptyFile) {
  const auto sink = Open("jsonl:" + Out());
  ASSERT_TRUE(OpenItem(*sink, "orders__0__0", 1)->Finish());
  EXPECT_TRUE(folder_.Has("out/orders/orders__0__0.jsonl"));
}

TEST_F(FileSinkTest, NextHolderKeepsOnlyFlushedDocuments) {
  const auto sink = Open("jsonl:" + Out());
  auto first = OpenItem(*sink, "i", 1);
  Write(*first, {"{\"a\":1}"}, At("1", 1));
  ASSERT_TRUE(first->Flush());
  Write(*first, {"{\"a\":2}"}, At("2", 2));  // lost with its holder

  const auto other = Open("jsonl:" + Out());
  const auto second = OpenItem(*other, "i", 2);
  EXPECT_EQ(*second->Known(), At("1", 1));
  // The stale holder resumes.
  EXPECT_EQ(first->Flush().error().code, Code::kLeaseLost);
  EXPECT_EQ(first->Finish().error().code, Code::kLeaseLost);
  EXPECT_EQ(first->Seal().error().code, Code::kLeaseLost);
  EXPECT_FALSE(folder_.Has("out/orders/i.jsonl"));

  Write(*second, {"{\"a\":\"two\"}"}, At("2", 2));
  ASSERT_TRUE(second->Flush());
  Write(*second, {"{\"a\":\"three\"}"}, At("3", 3));
  ASSERT_TRUE(second->Finish());
  EXPECT_EQ(folder_.Read("out/orders/i.jsonl"), "{\"a\":1}\n{\"a\":\"two\"}\n{\"a\":\"three\"}\n");
  first.reset();
  EXPECT_EQ(folder_.Read("out/orders/i.jsonl"), "{\"a\":1}\n{\"a\":\"two\"}\n{\"a\":\"three\"}\n");
}

TEST_F(FileSinkTest, HolderWithoutDocumentsPublishesACopyOfCommittedBytes) {
  const auto sink = Open("jsonl:" + Out());
  const auto first = OpenItem(*sink, "i", 1);
  Write(*first, {"{\"a\":1}"}, At("1", 1));
  ASSERT_TRUE(first->Flush());
  ASSERT_TRUE(OpenItem(*sink, "i", 2)->Finish());
  // What the first holder has buffered must not reach the published file.
  Write(*first, {"{\"late\":" + std::string(3 << 20, '1') + "}"}, At("2", 2));
  EXPECT_FALSE(first->Flush());
  EXPECT_EQ(folder_.Read("out/orders/i.jsonl"), "{\"a\":1}\n");
}

TEST_F(FileSinkTest, OlderEpochCannotOpen) {
  const auto sink = Open("jsonl:" + Out());
  OpenItem(*sink, "i", 3);
  EXPECT_EQ(sink->Open("orders", FenceOf("i", 2)).error().code, Code::kLeaseLost);
  EXPECT_TRUE(sink->Open("orders", FenceOf("other", 1))) << "each item has its own fence";
}

TEST_F(FileSinkTest, FinishedItemStaysFinished) {
  const auto sink = Open("jsonl:" + Out());
  {
    const auto writer = OpenItem(*sink, "i", 1);
    Write(*writer, {"{\"a\":1}"}, At("1", 1));
    ASSERT_TRUE(writer->Finish());
  }
  const auto again = OpenItem(*sink, "i", 2);
  EXPECT_EQ(*again->Known(), At("1", 1));
  ASSERT_TRUE(again->Finish());
  EXPECT_FALSE(again->Write(BatchOf({"{}"}), At("2", 2), {}));
  EXPECT_EQ(folder_.Read("out/orders/i.jsonl"), "{\"a\":1}\n");
}

TEST_F(FileSinkTest, SealPublishesCommittedDocuments) {
  const auto sink = Open("jsonl:" + Out());
  const auto writer = OpenItem(*sink, "i", 1);
  Write(*writer, {"{\"a\":1}"}, At("1", 1));
  const auto sealed = writer->Seal();
  ASSERT_TRUE(sealed);
  EXPECT_EQ(**sealed, At("1", 1));
  EXPECT_FALSE(writer->Write(BatchOf({"{}"}), At("2", 2), {}));
  const auto next = OpenItem(*sink, "i", 2);
  EXPECT_TRUE(next->Sealed());
  EXPECT_EQ(*next->Known(), At("1", 1));
  EXPECT_EQ(**next->Seal(), At("1", 1));
  EXPECT_EQ(folder_.Read("out/orders/i.jsonl"), "{\"a\":1}\n");
}

TEST_F(FileSinkTest, AnEmptyBatchOnlyStoresProgress) {
  const auto sink = Open("jsonl:" + Out());
  Progress split = At("1", 1);
  split.end = "50";
  {
    const auto writer = OpenItem(*sink, "i", 1);
    Write(*writer, {"{\"a\":1}"}, At("1", 1));
    Write(*writer, {}, split);
    ASSERT_TRUE(writer->Flush());
  }
  EXPECT_EQ(*OpenItem(*sink, "i", 2)->Known(), split);
}

TEST_F(FileSinkTest, AnotherRunOrIncarnationIsRefusedUnlessItAdopts) {
  const auto first = Open("jsonl:" + Out());
  const auto writer = OpenItem(*first, "i", 7);
  Write(*writer, {"{\"a\":1}"}, At("1", 1));
  ASSERT_TRUE(writer->Flush());

  Fence other = FenceOf("i", 1);
  other.run = "another";
  EXPECT_EQ(Open("jsonl:" + Out())->Open("orders", other).error().code, Code::kConflict);
  Fence later = FenceOf("i", 1);
  later.incarnation = "two";
  EXPECT_EQ(Open("jsonl:" + Out())->Open("orders", later).error().code, Code::kConflict);
  later.adopts = true;
  const auto sink = Open("jsonl:" + Out());
  const auto adopted = sink->Open("orders", later);
  ASSERT_TRUE(adopted) << adopted.error().ToString();
  EXPECT_EQ(*(*adopted)->Known(), At("1", 1));
}

TEST_F(FileSinkTest, ForeignFilesAreNotTouched) {
  folder_.Write("out/orders/mine.jsonl", "precious\n");
  const auto writer = Open("jsonl:" + Out())->Open("orders", FenceOf("i", 1));
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::kConflict);
  EXPECT_NE(writer.error().message.find(Out() + "/orders"), std::string::npos);
  EXPECT_FALSE(folder_.Has("out/orders/.muster")) << "our state folder was left";
}

TEST_F(FileSinkTest, IdsAndRoutingsCanBeKept) {
  const auto sink = Open("jsonl:" + Out() + "?id=_id&routing=_routing");
  const auto writer = OpenItem(*sink, "i", 1);
  Write(*writer, {"{\"a\":1}", " {}", "{\"_id\":\"i\"}"}, At("3", 3));
  const auto refused = writer->Write(BatchOf({"{\"_id\":\"x\"}"}), At("4", 4), {});
  ASSERT_EQ(refused->size(), 1U);
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(folder_.Read("out/orders/i.jsonl"),
            "{\"_id\":\"i\",\"_routing\":\"r\",\"a\":1}\n{\"_id\":\"i\",\"_routing\":\"r\"}\n"
            "{\"_routing\":\"r\",\"_id\":\"i\"}\n");
}

TEST_F(FileSinkTest, CsvHasTheColumnsOfTheFirstDocumentsInEveryFile) {
  const auto sink = Open("csv:" + Out());
  const auto first = OpenItem(*sink, "a", 1);
  const auto second = OpenItem(*sink, "b", 1);
  Write(*first, {R"({"id":1,"text":"x,y"})", R"({"id":2.50,"more":{"n":[1,"z"]}})"}, At("2", 2));
  Write(*second, {R"({"more":"\u00e4\n\"","id":null,"text":""})"}, At("1", 1));
  ASSERT_TRUE(first->Finish());
  ASSERT_TRUE(second->Finish());
  EXPECT_EQ(folder_.Read("out/orders/a.csv"),
            "id,text,more\n1,\"x,y\",\n2.50,,\"{\"\"n\"\":[1,\"\"z\"\"]}\"\n");
  EXPECT_EQ(folder_.Read("out/orders/b.csv"), "id,text,more\n,\"\",\"ä\n\"\"\"\n");
}

TEST_F(FileSinkTest, CsvRefusesFieldsWithoutAColumn) {
  const auto sink = Open("csv:" + Out() + "?columns=a,b");
  const auto writer = OpenItem(*sink, "i", 1);
  std::vector<std::string> recorded;
  ASSERT_TRUE(writer->RecordsRefusals([&](const Document& document, std::string_view) {
    recorded.emplace_back(document.body);
    return Status();
  }));
  const auto refused =
      writer->Write(BatchOf({R"({"a":1})", R"({"c":1})", R"({"b":2})"}), At("3", 3), {});
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_EQ(refused->at(0).index, 1U);
  EXPECT_NE(refused->at(0).reason.find("'c'"), std::string::npos);
  EXPECT_EQ(recorded, (std::vector<std::string>{R"({"c":1})"}));
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(folder_.Read("out/orders/i.csv"), "a,b\n1,\n,2\n");
  EXPECT_EQ(OpenItem(*sink, "i", 2)->Known()->counts.failed, 1);
}

TEST_F(FileSinkTest, CsvTakesColumnsFromMetadata) {
  const auto sink = Open("csv:" + Out());
  ASSERT_TRUE(sink->Prepare(
      {.name = "orders", .metadata = R"({"columns":[{"name":"x"},{"name":"y"}]})"}, false));
  ASSERT_TRUE(OpenItem(*sink, "i", 1)->Finish());
  EXPECT_EQ(folder_.Read("out/orders/i.csv"), "x,y\n");
}

TEST_F(FileSinkTest, CompressedFilesAreCompleteAcrossHolders) {
  for (const auto& [param, ending, compression] :
       {std::tuple("gzip", ".gz", Compression::kGzip),
        std::tuple("zstd", ".zst", Compression::kZstd)}) {
    const std::string url = "csv:" + Out() + param + "?compress=" + param;
    const auto sink = Open(url);
    const auto first = OpenItem(*sink, "i", 1);
    Write(*first, {R"({"a":1})"}, At("1", 1));
    ASSERT_TRUE(first->Flush());
    const auto other = Open(url);
    const auto second = OpenItem(*other, "i", 2);
    Write(*second, {R"({"a":2})"}, At("2", 2));
    ASSERT_TRUE(second->Finish());
    const std::string path = Out() + param + "/orders/i.csv" + ending;
    auto stream = OpenByteStream(path, compression, 0);
    ASSERT_TRUE(stream);
    std::string text;
    char buffer[100];
    for (size_t got; (got = *(*stream)->Read(buffer, sizeof buffer)) > 0;) text.append(buffer, got);
    EXPECT_EQ(text, "a\n1\n2\n");
  }
}

class SingleFileTest : public FileSinkTest {
 protected:
  static Fence Alone(const std::string& item, const std::string& run) {
    Fence fence;
    fence.run = fence.incarnation = run;
    fence.item = item;
    fence.alone = true;
    return fence;
  }
};

TEST_F(SingleFileTest, ItemsBecomeOneFileInTheOrderOfTheSource) {
  const auto sink = Open("csv:" + Out() + "/all.csv");
  for (const int shard : {10, 2, 1}) {
    const std::string name = WorkItemName{"orders", shard}.ToString();
    const auto writer = sink->Open("orders", Alone(name, "r"));
    ASSERT_TRUE(writer) << writer.error().ToString();
    Write(**writer, {"{\"shard\":" + std::to_string(shard) + "}"}, At("1", 1));
    ASSERT_TRUE((*writer)->Finish());
  }
  EXPECT_FALSE(folder_.Has("out/all.csv"));
  ASSERT_TRUE(sink->Finish("orders"));
  EXPECT_EQ(folder_.Read("out/all.csv"), "shard\n1\n2\n10\n");
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(Out())) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, (std::set<std::string>{"all.csv"}));
}

TEST_F(SingleFileTest, ExistingFileIsNotOverwritten) {
  folder_.Write("out/all.jsonl", "precious\n");
  const auto sink = Open("jsonl:" + Out() + "/all.jsonl");
  const auto writer = sink->Open("orders", Alone("i", "r"));
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::kConflict);
  EXPECT_EQ(folder_.Read("out/all.jsonl"), "precious\n");
}

TEST_F(SingleFileTest, OutputOfAnInterruptedMigrationIsReplaced) {
  for (const std::string target : {"/all.jsonl", ""}) {
    {
      const auto sink = Open("jsonl:" + Out() + target);
      ASSERT_TRUE(sink->Prepare({.name = "orders"}, false));
      const auto done = *sink->Open("orders", Alone("orders__0__0", "first"));
      Write(*done, {"{\"first\":1}"}, At("1", 1));
      ASSERT_TRUE(done->Finish());
      const auto open = *sink->Open("orders", Alone("orders__1__0", "first"));
      Write(*open, {"{\"first\":2}"}, At("1", 1));
      ASSERT_TRUE(open->Flush());
      const auto meanwhile = Open("jsonl:" + Out() + target)->Open("orders", Alone("i", "second"));
      ASSERT_FALSE(meanwhile);
      EXPECT_EQ(meanwhile.error().code, Code::kConflict);
      EXPECT_NE(meanwhile.error().message.find("is being written"), std::string::npos);
    }
    const auto sink = Open("jsonl:" + Out() + target);
    const auto writer = sink->Open("orders", Alone("orders__0__0", "second"));
    ASSERT_TRUE(writer) << writer.error().ToString();
    Write(**writer, {"{\"second\":1}"}, At("1", 1));
    ASSERT_TRUE((*writer)->Finish());
    ASSERT_TRUE(sink->Finish("orders"));
    EXPECT_EQ(folder_.Read(target.empty() ? "out/orders/orders__0__0.jsonl" : "out/all.jsonl"),
              "{\"second\":1}\n");
    EXPECT_FALSE(folder_.Has("out/orders/orders__1__0.jsonl"));
    std::filesystem::remove_all(Out());
  }
}

TEST_F(SingleFileTest, WorkersOfOneRunMayShareIt) {
  const std::string url = "jsonl:" + Out() + "/all.jsonl.gz";
  ASSERT_TRUE(Open(url)->Prepare({.name = "orders"}, false));
  for (const char* item : {"orders__1__0", "orders__0__0"}) {
    const auto sink = Open(url);
    const auto writer = OpenItem(*sink, item, 1);
    Write(*writer, {"{\"item\":\"" + std::string(item) + "\"}"}, At("1", 1));
    ASSERT_TRUE(writer->Finish());
  }
  ASSERT_TRUE(Open(url)->Finish("orders"));
  ASSERT_TRUE(Open(url)->Finish("orders")) << "by any process, and more than once";
  auto stream = OpenByteStream(Out() + "/all.jsonl.gz", Compression::kGzip, 0);
  ASSERT_TRUE(stream);
  char buffer[1000];
  std::string text;
  for (size_t got; (got = *(*stream)->Read(buffer, sizeof buffer)) > 0;) text.append(buffer, got);
  EXPECT_EQ(text, "{\"item\":\"orders__0__0\"}\n{\"item\":\"orders__1__0\"}\n");
}

TEST_F(SingleFileTest, TwoCollectionsCannotShareAFile) {
  const auto sink = Open("jsonl:" + Out() + "/all.jsonl");
  ASSERT_TRUE(sink->Prepare({.name = "orders"}, true));
  EXPECT_EQ(sink->Prepare({.name = "items"}, true).error().code, Code::kInvalid);
}

TEST_F(FileSinkTest, EvaluateReportsChangesAndMakesNone) {
  const auto changes = Open("jsonl:" + Out())->Prepare({.name = "orders"}, true);
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_EQ(changes->at(0).change, "create folder " + Out() + "/orders");
  EXPECT_FALSE(folder_.Has("out"));
}

TEST_F(FileSinkTest, UnwritableTargetIsNamed) {
  folder_.Write("file", "");
  const auto sink = Open("jsonl:" + folder_.path() + "/file/out");
  const auto prepared = sink->Prepare({.name = "orders"}, false);
  ASSERT_FALSE(prepared);
  EXPECT_NE(prepared.error().message.find("/file/out/orders"), std::string::npos);
}

TEST_F(FileSinkTest, AnOlderVersionsStateIsContinuedAndANewerOnesRefused) {
  const std::string state = "out/orders/.muster/";
  {
    const auto sink = Open("jsonl:" + Out());
    ASSERT_TRUE(sink->Prepare({.name = "orders"}, false));
    const auto writer = OpenItem(*sink, "a", 1);
    Write(*writer, {"{}"}, At("1", 1));
    ASSERT_TRUE(writer->Flush());
  }
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.At(state))) {
    if (entry.path().extension() == ".item") name = entry.path().filename().string();
  }
  Json item = Json::parse(folder_.Read(state + name));
  EXPECT_EQ(item["v"], 1);
  item.erase("v");
  folder_.Write(state + name, ToJsonText(item));
  folder_.Write(state + "run.json", R"({"run":"run","incarnation":"one","alone":false})");
  {
    const auto writer = OpenItem(*Open("jsonl:" + Out()), "a", 2);
    EXPECT_EQ(writer->Known().value().position, "1");
  }
  const auto refusal = [&] {
    const auto opened = Open("jsonl:" + Out())->Open("orders", FenceOf("a", 3));
    return opened ? std::string() : opened.error().message;
  };
  item["v"] = 2;
  folder_.Write(state + name, ToJsonText(item));
  EXPECT_NE(refusal().find(".item was written by a newer version of muster: in format 2"),
            std::string::npos)
      << refusal();
  folder_.Write(state + "run.json", R"({"v":2,"owner":"run"})");
  EXPECT_NE(refusal().find("run.json was written by a newer version of muster: in format 2"),
            std::string::npos)
      << refusal();
}

}  // namespace
}  // namespace muster::pipeline
