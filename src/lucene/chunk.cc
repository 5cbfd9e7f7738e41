#include "lucene/chunk.h"

#include <algorithm>
#include <cstring>

#include "lucene/inflate.h"
#include "lucene/lz4.h"
#include "lucene/packed_ints.h"

namespace muster::lucene {
namespace {

static_assert(kUnpackSpare >= kLz4Spare);

// Lucene closes a chunk after at most 4096 documents.
constexpr uint64_t kMaxDocs = 1 << 20;
// A document, and so a chunk, has less than 2 GiB.
constexpr uint64_t kMaxBytes = 1ULL << 31;
constexpr size_t kMostKept = 4 * 1024 * 1024;

// The maximum expansion of compressed bytes, so that a damaged length cannot exhaust memory.
uint64_t MostBytesFrom(uint64_t packed, Packing packing) {
  switch (packing) {
    case Packing::kZstd:
    case Packing::kZstdDictionary:
    case Packing::kZstdBlocks:
      return packed * 65536 + 1024;
    default:
      return packed * 1100 + 1024;
  }
}

void Latch(ByteReader& reader, const Status& status) {
  if (!status) reader.Fail(status.error().message, status.error().code);
}

void UnpackLz4(ByteReader& reader, std::string_view in, std::string_view dictionary, char* to,
               size_t size) {
  // An empty block is a single token.
  if (size == 0) return reader.Expect(in.size() <= 1, "LZ4 data that unpacks to nothing");
  if (!reader.ok() || DecodeLz4Block(in, dictionary, to, size)) return;
  // liblz4 does not accept every way to end a block; otherwise this says what is wrong.
  const auto used = DecodeLz4(in, dictionary, to, size);
  if (!used) return Latch(reader, used.error());
  reader.Expect(*used == in.size(), "more LZ4 data than is unpacked");
}

// A dictionary first, then blocks that refer back to it but not to each other.
struct DictionaryLayout {
  size_t dictionary = 0;
  size_t block = 0;
};

DictionaryLayout ReadLayout(ByteReader& reader, size_t size) {
  DictionaryLayout layout;
  layout.dictionary = reader.VInt();
  layout.block = reader.VInt();
  reader.Expect(layout.dictionary <= size, "a dictionary longer than the data");
  reader.Expect(layout.dictionary == size || layout.block > 0, "blocks without bytes");
  return layout;
}

// One block, when those after it are decompressed and those before it are not: the dictionary,
// which is shorter than a block, is copied right before it, since liblz4 is faster with contiguous
// history.
void UnpackLz4BehindDictionary(ByteReader& reader, std::string_view packed,
                               const DictionaryLayout& layout, size_t block, char* to,
                               size_t size) {
  char* const start = to + layout.dictionary + block * layout.block;
  const size_t length = std::min(layout.block, size - static_cast<size_t>(start - to));
  const char* dictionary = to;
  if (block > 0 && layout.dictionary <= layout.block) {
    dictionary = start - layout.dictionary;
    std::memcpy(start - layout.dictionary, to, layout.dictionary);
  }
  char behind[kLz4Spare];
  std::memcpy(behind, start + length, kLz4Spare);
  UnpackLz4(reader, packed, {dictionary, layout.dictionary}, start, length);
  std::memcpy(start + length, behind, kLz4Spare);
}

void UnpackLz4Dictionary(ByteReader& reader, char* to, size_t size) {
  const DictionaryLayout layout = ReadLayout(reader, size);
  if (!reader.ok()) return;
  const size_t rest = size - layout.dictionary;
  const size_t blocks = layout.block == 0 ? 0 : (rest + layout.block - 1) / layout.block;
  if (blocks > reader.left()) return reader.Fail("more blocks than it has room for");
  const size_t dictionary_packed = reader.VInt();
  std::vector<uint32_t> lengths(blocks);
  for (uint32_t& length : lengths) length = reader.VInt();
  UnpackLz4(reader, reader.Take(dictionary_packed), {}, to, layout.dictionary);
  std::vector<std::string_view> packed(blocks);
  for (size_t i = 0; i < blocks; ++i) packed[i] = reader.Take(lengths[i]);
  for (size_t i = blocks; i > 0 && reader.ok(); --i) {
    UnpackLz4BehindDictionary(reader, packed[i - 1], layout, i - 1, to, size);
  }
}

using UnpackBlock = Status (*)(std::string_view in, std::string_view dictionary, char* to,
                               size_t size);

void UnpackSized(ByteReader& reader, UnpackBlock unpack, std::string_view dictionary, char* to,
                 size_t size) {
  const std::string_view in = reader.String();
  if (reader.ok() && size > 0) Latch(reader, unpack(in, dictionary, to, size));
}

void UnpackBlocks(ByteReader& reader, UnpackBlock unpack, bool has_dictionary, char* to,
                  size_t size) {
  DictionaryLayout layout;
  if (has_dictionary) {
    layout = ReadLayout(reader, size);
    if (reader.ok()) UnpackSized(reader, unpack, {}, to, layout.dictionary);
  } else {
    layout.block = reader.VInt();
    reader.Expect(layout.block > 0, "blocks without bytes");
  }
  const std::string_view dictionary(to, reader.ok() ? layout.dictionary : 0);
  for (size_t done = layout.dictionary; done < size && reader.ok();) {
    const size_t length = std::min(layout.block, size - done);
    UnpackSized(reader, unpack, dictionary, to + done, length);
    done += length;
  }
}

}  // namespace

void Unpack(ByteReader& reader, Packing packing, char* to, size_t size) {
  switch (packing) {
    case Packing::kLz4: {
      // Its length is not stored: decompressing it shows where it ends.
      const size_t start = reader.offset();
      const auto used = DecodeLz4(reader.Take(reader.left()), {}, to, size);
      if (!used) return Latch(reader, used.error());
      return reader.SeekTo(start + *used);
    }
    case Packing::kDeflate:
      return UnpackSized(reader, InflateRaw, {}, to, size);
    case Packing::kZstd:
      return UnpackSized(reader, DecodeZstd, {}, to, size);
    case Packing::kLz4Dictionary:
      return UnpackLz4Dictionary(reader, to, size);
    case Packing::kDeflateDictionary:
      return UnpackBlocks(reader, InflateRaw, true, to, size);
    case Packing::kZstdDictionary:
      return UnpackBlocks(reader, DecodeZstd, true, to, size);
    case Packing::kZstdBlocks:
      return UnpackBlocks(reader, DecodeZstd, false, to, size);
  }
}

// Untouched memory costs nothing, so a damaged but plausible length does not either. What one huge
// document needed is not kept for the small ones after it.
void Chunk::MakeRoom(size_t size) {
  if (capacity_ >= size && capacity_ - size <= kMostKept) return;
  buffer_.reset();
  buffer_ = std::make_unique_for_overwrite<char[]>(size);
  capacity_ = size;
}

Status Chunk::Decode(std::string_view bytes, const ChunkFormat& format, uint64_t first_doc,
                     uint64_t docs, std::string_view origin, uint64_t base) {
  ByteReader reader(bytes, origin, format.order, base);
  // If this chunk is damaged, nothing of an earlier one may pass for it.
  field_counts_.clear();
  first_doc_ = first_doc;
  reader.Expect(reader.VInt() == first_doc, "a chunk of other documents");
  const uint32_t token = reader.VInt();
  reader.Expect(token >> format.token_flags == docs, "a chunk of another number of documents");
  reader.Expect(docs > 0 && docs <= kMaxDocs, "an impossible number of documents in a chunk");
  MUSTER_TRY(reader.status());
  std::vector<uint32_t> counts;
  if (docs == 1) {
    counts.assign(1, reader.VInt());
    lengths_.assign(1, reader.VInt());
  } else {
    ReadChunkInts(reader, docs, counts);
    ReadChunkInts(reader, docs, lengths_);
  }
  starts_.resize(docs);
  uint64_t total = 0;
  for (size_t i = 0; i < docs; ++i) {
    starts_[i] = total;
    total += lengths_[i];
  }
  reader.Expect(total <= kMaxBytes && total <= MostBytesFrom(reader.left(), format.packing),
                "documents longer than the chunk can hold");
  MUSTER_TRY(reader.status());
  bool sliced = format.token_flags > 0 && (token & 1) != 0;
  if (format.slices_by_size) sliced = !format.never_slices && total >= 2ULL * format.chunk_size;
  reader.Expect(!sliced || format.chunk_size > 0, "slices without bytes");
  MakeRoom(total + kUnpackSpare);
  const uint64_t unit = sliced ? format.chunk_size : total;
  for (uint64_t done = 0; done < total && reader.ok(); done += unit) {
    Unpack(reader, format.packing, buffer_.get() + done, std::min(unit, total - done));
  }
  // An empty chunk still has a few bytes that decompress to nothing.
  reader.Expect(total == 0 || reader.left() == 0, "more bytes than the chunk unpacks");
  MUSTER_TRY(reader.status());
  field_counts_ = std::move(counts);
  return {};
}

}  // namespace muster::lucene
