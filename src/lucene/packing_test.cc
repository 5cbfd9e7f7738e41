// The decoders of packed bytes: LZ4, LZF, DEFLATE and zstd.
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "lucene/byte_writer.h"
#include "lucene/inflate.h"
#include "lucene/lz4.h"
#include "lucene/lzf.h"

namespace muster::lucene {
namespace {

std::string Deflate(std::string_view text, std::string_view dictionary = {}) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  const auto bytes = [](std::string_view view) {
    return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(view.data()));
  };
  if (!dictionary.empty()) {
    deflateSetDictionary(&stream, bytes(dictionary), static_cast<uInt>(dictionary.size()));
  }
  std::string out(1000, '\0');
  stream.next_in = bytes(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = bytes(out);
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(std::string_view text, std::string_view dictionary = {}) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_refPrefix(context, dictionary.data(), dictionary.size());
  std::string out(1000, '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

Result<std::string> Lz4(std::string_view in, size_t size, std::string_view dictionary = {}) {
  std::string out(size, '\0');
  MUSTER_ASSIGN(const size_t used, DecodeLz4(in, dictionary, out.data(), size));
  EXPECT_EQ(used, in.size());
  return out;
}

TEST(Lz4, CopiesLiteralsAndMatchesThatOverlap) {
  // "ab", then 6 bytes from 2 back, then "xyz".
  const std::string in(
      "\x22"
      "ab"
      "\x02\x00"
      "\x30"
      "xyz",
      9);
  EXPECT_EQ(*Lz4(in, 11),
            "abababab"
            "xyz");
  EXPECT_TRUE(EveryTruncation(in, [](auto cut) { return !Lz4(cut, 11); }));
}

TEST(Lz4, StopsAfterAFinalMatch) {
  const std::string in(
      "\x10"
      "a"
      "\x01\x00"
      "rest",
      8);
  std::string out(5, '\0');
  EXPECT_EQ(*DecodeLz4(in, {}, out.data(), 5), 4);
  EXPECT_EQ(out, "aaaaa");
}

TEST(Lz4, ReadsLongLengths) {
  const std::string literals(300, 'q');
  EXPECT_EQ(*Lz4(std::string("\xF0\xFF\x1E") + literals, 300), literals);
}

TEST(Lz4, MatchesReachIntoTheDictionary) {
  EXPECT_EQ(*Lz4(std::string("\x20"
                             "ab"
                             "\x05\x00",
                             5),
                 6, "wxyz"),
            "abxyza");
  EXPECT_EQ(*Lz4(std::string("\x04"
                             "\x02\x00",
                             3),
                 8, "yz"),
            "yzyzyzyz");
}

TEST(Lz4, RejectsMatchesBeforeTheStartAndTooLongOnes) {
  EXPECT_FALSE(Lz4(std::string("\x10"
                               "a"
                               "\x02\x00",
                               4),
                   5));
  EXPECT_FALSE(Lz4(std::string("\x10"
                               "a"
                               "\x00\x00",
                               4),
                   5));
  EXPECT_FALSE(Lz4(std::string("\x12"
                               "a"
                               "\x01\x00",
                               4),
                   5));
  EXPECT_FALSE(
      Lz4("\x30"
          "abc",
          2));
}

TEST(Lzf, UnpacksRawAndPackedBlocks) {
  // Raw "ab"; then "x" and 4 bytes from 1 back.
  const std::string in = std::string("ZV\0\0\2ab", 7) + std::string("ZV\1\0\4\0\5\0x\x40\0", 11);
  EXPECT_EQ(*DecodeLzf(in, 100), "abxxxxx");
  EXPECT_FALSE(DecodeLzf(in, 6)) << "more than allowed";
  // A cut between two blocks looks like a complete file.
  EXPECT_TRUE(EveryTruncation(
      in, [](auto cut) { return cut.empty() || cut.size() == 7 || !DecodeLzf(cut, 100); }));
}

TEST(Inflate, UnpacksWithAndWithoutADictionary) {
  for (const std::string_view dictionary : {"", "a dictionary of words"}) {
    const std::string_view text = "words of a dictionary of words of words";
    const std::string packed = Deflate(text, dictionary);
    std::string out(text.size(), '\0');
    ASSERT_TRUE(InflateRaw(packed, dictionary, out.data(), out.size()));
    EXPECT_EQ(out, text);
    EXPECT_FALSE(InflateRaw(packed, dictionary, out.data(), out.size() - 1));
    EXPECT_TRUE(EveryTruncation(
        packed, [&](auto cut) { return !InflateRaw(cut, dictionary, out.data(), out.size()); }));
  }
}

TEST(Inflate, UnpacksDataOfUnknownSizeUpToALimit) {
  const std::string text(200'000, 'x');
  const std::string packed = Deflate(text);
  EXPECT_EQ(*InflateAll(packed, 1'000'000), text);
  EXPECT_FALSE(InflateAll(packed, 100'000));
  EXPECT_TRUE(EveryTruncation(packed, [](auto cut) { return !InflateAll(cut, 1'000'000); }));
}

TEST(Zstd, UnpacksWithAndWithoutADictionary) {
  for (const std::string_view dictionary : {"", "a dictionary of words"}) {
    const std::string_view text = "words of a dictionary of words of words";
    const std::string packed = Zstd(text, dictionary);
    std::string out(text.size(), '\0');
    ASSERT_TRUE(DecodeZstd(packed, dictionary, out.data(), out.size()));
    EXPECT_EQ(out, text);
    EXPECT_FALSE(DecodeZstd(packed, dictionary, out.data(), out.size() - 1));
    EXPECT_TRUE(EveryTruncation(
        packed, [&](auto cut) { return !DecodeZstd(cut, dictionary, out.data(), out.size()); }));
  }
}

TEST(Zstd, UnpacksDataOfUnknownSizeUpToALimit) {
  const std::string text(200'000, 'x');
  const std::string packed = Zstd(text);
  EXPECT_EQ(*DecodeZstdAll(packed, 1'000'000), text);
  EXPECT_FALSE(DecodeZstdAll(packed, 100'000));
  EXPECT_TRUE(EveryTruncation(packed, [](auto cut) { return !DecodeZstdAll(cut, 1'000'000); }));
}

}  // namespace
}  // namespace muster::lucene
