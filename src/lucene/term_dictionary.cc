#include "lucene/term_dictionary.h"

#include <algorithm>

#include "lucene/lz4.h"

namespace muster::lucene {
namespace {

constexpr uint32_t kMaxBlockShift = 10;    // written: 4 or 6
constexpr uint64_t kMaxTermBytes = 65536;  // Lucene: 32766
constexpr uint64_t kMaxBlockBytes = 32 * 1024 * 1024;
// LZ4 makes at most this many bytes out of one.
constexpr uint64_t kMaxGrowth = 256;

}  // namespace

Result<std::string_view> TermDictionary::At(uint64_t place) {
  if (place >= location_.size || location_.block_shift > kMaxBlockShift) {
    return Error{Code::kCorrupt, terms_.origin() + ": a term that is not in the dictionary"};
  }
  const uint64_t block = place >> location_.block_shift;
  if (block_ != block) {
    block_.reset();
    MUSTER_TRY(ReadBlock(block));
    block_ = block;
  }
  const size_t index = place & ((1ULL << location_.block_shift) - 1);
  const size_t start = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(start, ends_[index] - start);
}

Status TermDictionary::ReadBlock(uint64_t block) {
  const uint64_t first = block << location_.block_shift;
  const uint64_t count = std::min<uint64_t>(1ULL << location_.block_shift, location_.size - first);
  MUSTER_ASSIGN(const uint64_t start, blocks_.MonotonicNumber(location_.blocks, block, order_));
  uint64_t end = terms_.length();
  if (first + count < location_.size) {
    MUSTER_ASSIGN(end, blocks_.MonotonicNumber(location_.blocks, block + 1, order_));
  }
  if (start > end || end - start > kMaxBlockBytes) {
    return Error{Code::kCorrupt, terms_.origin() + ": a block of terms of an impossible size"};
  }
  MUSTER_ASSIGN(const std::string_view bytes, terms_.At(start, end - start));
  ByteReader reader(bytes, terms_.origin(), order_);
  text_ = reader.String();
  ends_.assign(1, text_.size());
  reader.Expect(text_.size() <= kMaxTermBytes, "a term that is too long");
  MUSTER_TRY(reader.status());
  if (location_.packing == TermPacking::kNone) return ReadTerms(reader, count);
  if (count > 1) MUSTER_TRY(Unpack(reader));
  ByteReader unpacked(packed_, terms_.origin(), order_);
  return ReadTerms(unpacked, count);
}

Status TermDictionary::Unpack(ByteReader& reader) {
  const uint64_t size = reader.VInt();
  reader.Expect(size <= kMaxBlockBytes && size / kMaxGrowth <= reader.left(),
                "a block of terms of an impossible size");
  const std::string_view packed = reader.Take(reader.left());
  MUSTER_TRY(reader.status());
  packed_.resize(size);
  const bool has_dictionary = location_.packing == TermPacking::kLz4Dictionary;
  const auto unpacked =
      DecodeLz4(packed, has_dictionary ? std::string_view(text_) : "", packed_.data(), size);
  if (!unpacked) return unpacked.error().Within(terms_.origin());
  return {};
}

// Each term after the first starts like the one before.
Status TermDictionary::ReadTerms(ByteReader& reader, uint64_t count) {
  constexpr uint32_t kMore = 15;
  size_t last = 0;  // where the term before starts
  while (ends_.size() < count && reader.ok()) {
    const uint8_t token = reader.U8();
    uint64_t same = token & 15U;
    uint64_t rest = 1U + (token >> 4U);
    if (same == kMore) same += reader.VInt();
    if (rest == kMore + 1) rest += reader.VInt();
    reader.Expect(same <= ends_.back() - last && same + rest <= kMaxTermBytes,
                  "a term that is too long");
    const std::string_view end = reader.Take(rest);
    if (!reader.ok()) break;
    const size_t start = text_.size();
    text_.append(text_, last, same);
    text_ += end;
    ends_.push_back(text_.size());
    last = start;
  }
  return reader.status();
}

}  // namespace muster::lucene
