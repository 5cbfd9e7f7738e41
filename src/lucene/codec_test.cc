#include "lucene/codec.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"

namespace muster::lucene {
namespace {

TEST(Codec, ReadsAnIndexHeader) {
  ByteWriter writer;
  writer.IndexHeader("Lucene90LiveDocs", 3, kTestId, "1a");
  ByteReader reader(writer.bytes(), "file");
  CodecHeader header = ReadHeader(reader);
  ReadIndexHeaderRest(reader, header);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(header.codec, "Lucene90LiveDocs");
  EXPECT_EQ(header.version, 3);
  EXPECT_EQ(header.id, kTestId);
  EXPECT_EQ(header.suffix, "1a");
}

TEST(Codec, ByteOrderDependsOnTheName) {
  EXPECT_EQ(OrderOf("Lucene50StoredFieldsFastData"), ByteOrder::kBig);
  EXPECT_EQ(OrderOf("Lucene87StoredFieldsFastData"), ByteOrder::kBig);
  EXPECT_EQ(OrderOf("Lucene90StoredFieldsFastData"), ByteOrder::kLittle);
  EXPECT_EQ(OrderOf("Lucene104Something"), ByteOrder::kLittle);
  EXPECT_EQ(OrderOf("ZstdStoredFields814"), ByteOrder::kLittle);
}

TEST(Codec, FooterDetectsEveryChangedByte) {
  const std::string file = Sealed("some content");
  EXPECT_EQ(*CheckFooter(file, "file"), "some content");
  for (size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(CheckFooter(changed, "file")) << "byte " << i;
  }
  EXPECT_TRUE(EveryTruncation(file, [](auto cut) { return !CheckFooter(cut, "file"); }));
}

TEST(Codec, ReadsAndWritesNumbersInBase36) {
  EXPECT_EQ(ToBase36(0), "0");
  EXPECT_EQ(ToBase36(1295), "zz");
  EXPECT_EQ(ParseBase36("zz"), 1295);
  EXPECT_EQ(ParseBase36("z-"), std::nullopt);
  EXPECT_EQ(ParseBase36(""), std::nullopt);
}

}  // namespace
}  // namespace muster::lucene
