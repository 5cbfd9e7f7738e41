// A complete hand-made repository: one index of one shard with one segment. Its five Lucene
// documents are in two chunks; number 1 is deleted, and number 2 is nested in number 3.
#include "lucene/repository.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lucene/byte_writer.h"
#include "lucene/shard_reader.h"
#include "support/temporary_folder.h"

namespace muster::lucene {
namespace {

namespace fs = std::filesystem;

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= bytes.size() - i ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

std::string StoredDocument(const std::string& id) {
  ByteWriter writer;
  writer.VInt(0 << 3 | 1).String("\xFF" + id);
  writer.VInt(1 << 3 | 1).String("{\"n\":\"" + id + "\"}");
  return writer.bytes();
}

// Documents of less than 128 bytes, stored as LZ4 literals.
std::string StoredChunk(uint64_t first, const std::vector<std::string>& documents) {
  ByteWriter writer;
  writer.VInt(first).VInt(documents.size() << 1);
  std::string all;
  writer.VInt(2);
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) {
    bits = bits << 2 | (i < documents.size() && !documents[i].empty() ? 2U : 0U);
  }
  writer.U8(bits).VInt(8);
  for (const std::string& document : documents) {
    writer.U8(document.size());
    all += document;
  }
  writer.U8(0xF0).U8(all.size() - 15).Raw(all);
  return writer.bytes();
}

class HandMade : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("index-0",
          R"({"snapshots":[{"name":"s","uuid":"U","state":1}],
              "indices":{"orders":{"id":"I","snapshots":["U"]}}})");
    Write("index-00x", "not a root");
    Write("snap-U.dat",
          R"({"snapshot":{"name":"s","uuid":"U","state":"SUCCESS","indices":["orders"]}})");
    WriteSettings("{}");
    WriteShard();
  }
  void Write(const std::string& path, const std::string& bytes) const {
    temporary_.Write(path, bytes);
  }

  void WriteSettings(const std::string& mapping, const std::string& more = "") const {
    Write("indices/I/meta-U.dat", R"({"orders":{"settings":{"index.number_of_shards":"1")" + more +
                                      R"(},"mappings":[{"_doc":)" + mapping + "}]}}");
  }

  void WriteShard() const {
    ByteWriter commit;
    commit.IndexHeader("segments", 9, kTestId, "1").VInt(8).VInt(0).VInt(0).VInt(8);
    commit.U64(1).VInt(1).U32(1).VInt(8).VInt(0).VInt(0).String("_0").Raw(kTestId).String("L");
    commit.U64(1).U32(1).U64(UINT64_MAX).U64(UINT64_MAX).U32(0).VInt(0).U32(0).VInt(0);
    ByteWriter info;
    info.IndexHeader("Lucene70SegmentInfo", 0, kTestId).U32(8).U32(4).U32(0).U8(0xFF).U32(5);
    info.U8(0xFF).VInt(0).VInt(0).VInt(0).VInt(0);
    ByteWriter fields;
    fields.IndexHeader("Lucene60FieldInfos", 2, kTestId).VInt(2);
    for (const auto& [number, name] : {std::pair{0, "_id"}, {1, "_source"}}) {
      fields.String(name).VInt(number).U8(0).U8(0).U8(0).U64(UINT64_MAX).VInt(0).VInt(0);
    }
    ByteWriter live;
    live.IndexHeader("Lucene50LiveDocs", 0, kTestId, "1").U64(0b11101);
    ByteWriter data;
    data.IndexHeader("Lucene50StoredFieldsFastData", 1, kTestId).VInt(16384).VInt(2);
    const size_t first = data.bytes().size();
    data.Raw(StoredChunk(0, {StoredDocument("a"), StoredDocument("gone"), ""}));
    const size_t second = data.bytes().size();
    data.Raw(StoredChunk(3, {StoredDocument("d"), StoredDocument("e")}));
    const size_t end = data.bytes().size();
    data.VInt(2).VInt(0);
    ByteWriter index;
    index.IndexHeader("Lucene50StoredFieldsFastIndex", 1, kTestId).VInt(2);
    index.VInt(2).VInt(0).VInt(3).VInt(0).VInt(first).VInt(second - first).VInt(0);
    index.VInt(0).VInt(end);

    const std::string fdt = Sealed(data.bytes());
    Write("indices/I/0/__fdt.part0", fdt.substr(0, 64));
    Write("indices/I/0/__fdt.part1", fdt.substr(64, 64));
    Write("indices/I/0/__fdt.part2", fdt.substr(128));
    Json files = Json::array();
    AddVirtual(files, "segments_1", Sealed(commit.bytes()));
    AddVirtual(files, "_0.si", Sealed(info.bytes()));
    AddBlob(files, "_0.fnm", Sealed(fields.bytes()));
    AddBlob(files, "_0_1.liv", Sealed(live.bytes()));
    AddBlob(files, "_0.fdx", Sealed(index.bytes()));
    files.push_back({{"name", "__fdt"},
                     {"physical_name", "_0.fdt"},
                     {"length", fdt.size()},
                     {"part_size", 64}});
    ASSERT_GT(fdt.size(), 128);
    ASSERT_LE(fdt.size(), 192);
    Write("indices/I/0/snap-U.dat", Json{{"name", "s"}, {"files", files}}.dump());
  }

  static void AddVirtual(Json& files, const std::string& name, const std::string& bytes) {
    files.push_back({{"name", "v__" + name},
                     {"physical_name", name},
                     {"length", bytes.size()},
                     {"meta_hash", Base64(bytes)}});
  }

  void AddBlob(Json& files, const std::string& name, const std::string& bytes) const {
    Write("indices/I/0/__" + name, bytes);
    ByteReader footer(std::string_view(bytes).substr(bytes.size() - 8), name);
    files.push_back({{"name", "__" + name},
                     {"physical_name", name},
                     {"length", bytes.size()},
                     {"checksum", ToBase36(footer.U64())},
                     {"written_by", "8.4.0"}});
  }

  // "POSITION:ID SOURCE" of each document from a position on, or the error.
  Result<std::vector<std::string>> ReadFrom(uint64_t position) const {
    MUSTER_ASSIGN(auto blobs, OpenFolder(folder_.string()));
    MUSTER_ASSIGN(const Repository repository, Repository::Open(std::move(blobs)));
    MUSTER_ASSIGN(const Snapshot snapshot, repository.ReadSnapshot("s"));
    MUSTER_ASSIGN(const SnapshotIndex index, repository.ReadIndex(snapshot, "orders"));
    MUSTER_ASSIGN(const ShardDirectory directory, repository.ReadShard(snapshot, index, 0));
    for (const auto& [name, file] : directory.files()) MUSTER_TRY(directory.Check(file));
    MUSTER_ASSIGN(ShardReader reader, ShardReader::Open(directory));
    reader.Seek(position);
    std::vector<std::string> lines;
    Document document;
    while (true) {
      MUSTER_ASSIGN(const bool found, reader.Next(document));
      if (!found) break;
      lines.push_back(std::to_string(document.position) + ":" + document.id + " " +
                      std::string(document.source.value_or("-")));
    }
    const ShardCounts& counts = reader.counts();
    EXPECT_EQ(counts.documents, lines.size());
    EXPECT_EQ(counts.documents + counts.nested + counts.deleted,
              reader.end() - std::min(position, reader.end()));
    return lines;
  }

  Error ErrorOfReading() const {
    const auto lines = ReadFrom(0);
    return lines ? Error{Code::kInternal, "no error"} : lines.error();
  }

  const testing::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(HandMade, LiveDocumentsAreReadFromEveryPosition) {
  const std::vector<std::pair<uint64_t, std::string>> all = {
      {0, R"(0:a {"n":"a"})"}, {3, R"(3:d {"n":"d"})"}, {4, R"(4:e {"n":"e"})"}};
  for (uint64_t from = 0; from <= 6; ++from) {
    std::vector<std::string> expected;
    for (const auto& [position, line] : all) {
      if (position >= from) expected.push_back(line);
    }
    const auto lines = ReadFrom(from);
    ASSERT_TRUE(lines) << lines.error().message;
    EXPECT_EQ(*lines, expected) << "from " << from;
  }
}

TEST_F(HandMade, EveryChangedByteIsDetected) {
  for (const auto& entry : fs::directory_iterator(folder_ / "indices/I/0")) {
    if (entry.path().filename() == "snap-U.dat") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    // Files without a checksum in the list are checked by their own.
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 4);
      std::ofstream(entry.path(), std::ios::binary) << changed;
      EXPECT_FALSE(ReadFrom(0)) << entry.path() << " byte " << i;
    }
    std::ofstream(entry.path(), std::ios::binary) << bytes;
  }
  EXPECT_TRUE(ReadFrom(0));
}

TEST_F(HandMade, EveryTruncationIsDetected) {
  for (const char* name :
       {"index-0", "snap-U.dat", "indices/I/meta-U.dat", "indices/I/0/snap-U.dat",
        "indices/I/0/__fdt.part1", "indices/I/0/___0.fdx"}) {
    const auto size = fs::file_size(folder_ / name);
    std::ifstream in(folder_ / name, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    for (size_t length = 0; length < size; ++length) {
      Write(name, bytes.substr(0, length));
      EXPECT_FALSE(ReadFrom(0)) << name << " cut to " << length;
    }
    Write(name, bytes);
  }
}

TEST_F(HandMade, MissingBlobIsNamed) {
  fs::remove(folder_ / "indices/I/0/__fdt.part1");
  const Error error = ErrorOfReading();
  EXPECT_NE(error.message.find("orders[0] _0.fdt"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("__fdt.part1"), std::string::npos) << error.message;
}

TEST_F(HandMade, NamesCannotEscapeTheRepository) {
  Write("index-0", R"({"snapshots":[{"name":"s","uuid":"../U"}],"indices":{}})");
  EXPECT_EQ(ErrorOfReading().code, Code::kCorrupt);
  Write("index-0", R"({"snapshots":[{"name":"s","uuid":"U"}],
                       "indices":{"orders":{"id":"..","snapshots":["U"]}}})");
  EXPECT_EQ(ErrorOfReading().code, Code::kCorrupt);
}

TEST_F(HandMade, IndicesWithoutStoredSourceAreRefusedByName) {
  const auto refusal = [&] {
    const Repository repository = *Repository::Open(*OpenFolder(folder_.string()));
    return repository.ReadIndex(*repository.ReadSnapshot("s"), "orders")->refusal;
  };
  EXPECT_EQ(refusal(), "");
  WriteSettings("{}", R"(,"index.mode":"logsdb")");
  EXPECT_NE(refusal().find("logsdb"), std::string::npos);
  WriteSettings(R"({"_source":{"mode":"synthetic"}})");
  EXPECT_NE(refusal().find("synthetic"), std::string::npos);
  WriteSettings("{}", R"(,"index.derived_source.enabled":"true")");
  EXPECT_NE(refusal().find("derived"), std::string::npos);
}

TEST_F(HandMade, ShallowSnapshotIsRefusedByName) {
  Write("indices/I/0/shallow-snap-U.dat", "");
  const Error error = ErrorOfReading();
  EXPECT_EQ(error.code, Code::kIncompatible);
  EXPECT_NE(error.message.find("shallow"), std::string::npos);
}

TEST_F(HandMade, FailedShardIsMissing) {
  Write("snap-U.dat",
        R"({"snapshot":{"state":"PARTIAL","indices":["orders"],
            "failures":[{"index":"orders","shard_id":0}]}})");
  EXPECT_EQ(ErrorOfReading().code, Code::kNotFound);
}

TEST(HashedPath, MatchesOpenSearch) {
  EXPECT_EQ(HashedPath("2XjEV3zVThirNGbMmN9gdw", 0), "V01011001010111");
  EXPECT_EQ(HashedPath("2XjEV3zVThirNGbMmN9gdw", 1), "901110101001001");
}

TEST(Repository, MissingRepositoryIsNotFound) {
  EXPECT_EQ(OpenFolder("/nowhere/at/all").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace muster::lucene
