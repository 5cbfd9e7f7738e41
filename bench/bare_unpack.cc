#include "bare_unpack.h"

#include <lz4.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "lucene/chunk.h"
#include "lucene/codec.h"
#include "lucene/packed_ints.h"
#include "lucene/segment_files.h"

namespace muster::bench {
namespace {

// Lucene ends blocks later than liblz4 expects, unless it believes that there is more room.
constexpr size_t kSpareBytes = 64;

using lucene::ByteOrder;
using lucene::ByteReader;

template <class T>
T Want(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

void Unpack(const char* from, size_t packed, char* to, size_t size, const char* dictionary,
            size_t dictionary_size) {
  const int got = LZ4_decompress_safe_usingDict(from, to, static_cast<int>(packed),
                                                static_cast<int>(size + kSpareBytes), dictionary,
                                                static_cast<int>(dictionary_size));
  if (got != static_cast<int>(size)) throw std::runtime_error("liblz4 refuses a block");
}

void UnpackWithLiblz4(ByteReader& reader, char* to, size_t size) {
  const size_t dictionary = reader.VInt();
  const size_t block = reader.VInt();
  size_t packed[64] = {reader.VInt()};
  const size_t blocks = block == 0 ? 0 : (size - dictionary + block - 1) / block;
  if (blocks >= 64) throw std::runtime_error("a chunk of more blocks than Lucene makes");
  for (size_t i = 1; i <= blocks; ++i) packed[i] = reader.VInt();
  Unpack(reader.Take(packed[0]).data(), packed[0], to, dictionary, nullptr, 0);
  for (size_t i = 1, done = dictionary; i <= blocks; ++i, done += block) {
    const size_t length = std::min(block, size - done);
    Unpack(reader.Take(packed[i]).data(), packed[i], to + done, length, to, dictionary);
  }
}

}  // namespace

BareUnpack::BareUnpack(const lucene::ShardDirectory& directory) {
  for (const lucene::SegmentCommit& commit : Want(lucene::ReadSegments(directory))) {
    const auto segment = Want(lucene::SegmentFiles::Open(directory, commit));
    const auto fdt = Want(segment.Find(".fdt"));
    AddFile(Want(fdt.Read(0, fdt.length())));
  }
  size_t largest = 0;
  for (const Block& block : blocks_) largest = std::max(largest, block.size);
  buffer_.resize(largest + kSpareBytes);
}

void BareUnpack::AddFile(std::string fdt) {
  const std::string_view content =
      std::string_view(fdt).substr(0, fdt.size() - lucene::kFooterBytes);
  ByteReader reader(content, "fdt", ByteOrder::kLittle);
  lucene::CodecHeader header = lucene::ReadHeader(reader);
  lucene::ReadIndexHeaderRest(reader, header);
  if (header.codec != "Lucene90StoredFieldsFastData") {
    throw std::runtime_error("stored fields of kind " + header.codec + " are not measured");
  }
  std::string room;
  while (reader.left() > 0) {
    reader.VInt();
    const uint32_t token = reader.VInt();
    const size_t documents = token >> 2;
    std::vector<uint32_t> counts;
    std::vector<uint32_t> lengths;
    if (documents == 1) {
      reader.VInt();
      lengths.assign(1, reader.VInt());
    } else {
      lucene::ReadChunkInts(reader, documents, counts);
      lucene::ReadChunkInts(reader, documents, lengths);
    }
    const size_t size = std::accumulate(lengths.begin(), lengths.end(), size_t{0});
    if ((token & 1) != 0) throw std::runtime_error("documents of this size are sliced");
    room.resize(std::max(room.size(), size + lucene::kUnpackSpare));
    const size_t start = reader.offset();
    lucene::Unpack(reader, lucene::Packing::kLz4Dictionary, room.data(), size);
    if (!reader.ok()) throw std::runtime_error(reader.status().error().ToString());
    blocks_.push_back({files_.size(), start, reader.offset(), size});
    unpacked_bytes_ += size;
  }
  files_.push_back(std::move(fdt));
}

std::string_view BareUnpack::PackedBytesOf(const Block& block) const {
  const std::string_view file = files_[block.file];
  return file.substr(block.start, block.end - block.start);
}

void BareUnpack::RunLiblz4() {
  for (const Block& block : blocks_) {
    ByteReader reader(PackedBytesOf(block), "fdt", ByteOrder::kLittle);
    UnpackWithLiblz4(reader, buffer_.data(), block.size);
  }
}

void BareUnpack::RunOurs() {
  for (const Block& block : blocks_) {
    ByteReader reader(PackedBytesOf(block), "fdt", ByteOrder::kLittle);
    lucene::Unpack(reader, lucene::Packing::kLz4Dictionary, buffer_.data(), block.size);
  }
}

}  // namespace muster::bench
