#include "lucene/stored_fields_index.h"

#include <algorithm>

namespace muster::lucene {
namespace {

// The numbers of one block, as offsets from a line.
std::vector<int64_t> ReadDeltas(ByteReader& reader, size_t count) {
  std::vector<int64_t> deltas;
  const uint32_t bits = reader.VInt();
  if (bits > 64) reader.Fail("numbers of more than 64 bits");
  const std::string_view bytes = reader.Take(PackedBytes(count, bits));
  if (!reader.ok()) return std::vector<int64_t>(count, 0);
  deltas.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    deltas.push_back(bits == 0 ? 0 : ZigZag(PackedAt(bytes, bits, i, ByteOrder::kBig)));
  }
  return deltas;
}

// Lucene writes blocks of 1024 chunks, and a segment of 100 GB has some millions of chunks.
constexpr uint32_t kMaxBlockChunks = 1 << 16;
constexpr uint32_t kMaxChunks = 1 << 24;

}  // namespace

size_t ChunkIndex::ChunkOf(uint64_t doc) const {
  const auto after = std::upper_bound(first_docs.begin(), first_docs.end(), doc);
  return static_cast<size_t>(after - first_docs.begin()) - 1;
}

Status ChunkIndex::Check(uint64_t start, uint64_t limit, uint64_t max_doc,
                         std::string_view origin) const {
  const auto damaged = [&](std::string_view why) {
    return Error{Code::kCorrupt,
                 std::string(origin) + ": the index of its chunks is wrong: " + std::string(why)};
  };
  if (first_docs.size() != positions.size()) return damaged("positions without documents");
  if (positions.empty()) {
    if (max_doc != 0) return damaged("no chunks, but documents");
    return {};
  }
  if (first_docs[0] != 0 || positions[0] != start) return damaged("it does not begin at the start");
  for (size_t i = 1; i < positions.size(); ++i) {
    if (first_docs[i] <= first_docs[i - 1] || positions[i] <= positions[i - 1]) {
      return damaged("chunk " + std::to_string(i) + " is not after the one before");
    }
  }
  if (first_docs.back() >= max_doc) return damaged("documents beyond the last one");
  if (end <= positions.back() || end > limit) return damaged("it does not end where the chunks do");
  return {};
}

ChunkIndex ReadBlockIndex(ByteReader& reader) {
  ChunkIndex index;
  const uint32_t packed_version = reader.VInt();
  if (reader.ok() && (packed_version < 1 || packed_version > 2)) {
    reader.Fail(
        "packed numbers of version " + std::to_string(packed_version) + " are not understood",
        Code::kIncompatible);
  }
  while (reader.ok()) {
    const uint32_t count = reader.VInt();
    if (count == 0) break;
    if (count > kMaxBlockChunks || index.size() + count > kMaxChunks) {
      reader.Fail("an impossible number of chunks");
      break;
    }
    const uint64_t doc_base = reader.VInt();
    const uint64_t average_docs = reader.VInt();
    const std::vector<int64_t> docs = ReadDeltas(reader, count);
    const uint64_t start = reader.VLong();
    const uint64_t average_size = reader.VLong();
    const std::vector<int64_t> sizes = ReadDeltas(reader, count);
    if (!reader.ok()) break;
    for (uint64_t i = 0; i < count; ++i) {
      index.first_docs.push_back(doc_base + average_docs * i + static_cast<uint64_t>(docs[i]));
      index.positions.push_back(start + average_size * i + static_cast<uint64_t>(sizes[i]));
    }
  }
  return index;
}

MonotonicIndex MonotonicIndex::ReadMeta(ByteReader& meta, uint64_t max_doc) {
  MonotonicIndex index;
  meta.Expect(meta.U32() == max_doc, "another number of documents than the segment has");
  const uint32_t shift = meta.U32();
  const uint32_t count = meta.U32();
  meta.Expect(count <= kMaxChunks, "an impossible number of chunks");
  index.docs_start_ = meta.U64();
  index.docs_ = DirectMonotonic::ReadMeta(meta, count, shift);
  index.pointers_start_ = meta.U64();
  index.pointers_ = DirectMonotonic::ReadMeta(meta, count, shift);
  index.pointers_end_ = meta.U64();
  index.max_pointer_ = meta.U64();
  return index;
}

Result<ChunkIndex> MonotonicIndex::Decode(std::string_view fdx, ByteOrder order,
                                          std::string_view origin) const {
  if (docs_start_ > pointers_start_ || pointers_start_ > pointers_end_ ||
      pointers_end_ > fdx.size()) {
    return Error{Code::kCorrupt, std::string(origin) + ": its numbers lie beyond its end"};
  }
  ChunkIndex index;
  MUSTER_ASSIGN(
      index.first_docs,
      docs_.Decode(fdx.substr(docs_start_, pointers_start_ - docs_start_), order, origin));
  MUSTER_ASSIGN(index.positions,
                pointers_.Decode(fdx.substr(pointers_start_, pointers_end_ - pointers_start_),
                                 order, origin));
  index.end = max_pointer_;
  // Some writers end the list with the end of documents and chunks.
  if (!index.positions.empty() && index.positions.back() == max_pointer_) {
    index.positions.pop_back();
    index.first_docs.pop_back();
  }
  return index;
}

}  // namespace muster::lucene
