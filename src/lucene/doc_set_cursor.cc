#include "lucene/doc_set_cursor.h"

#include <bit>

namespace muster::lucene {
namespace {

constexpr uint32_t kDocsPerBlock = 65536;
constexpr uint32_t kMostSparse = 4095;
// The list ends with a block that cannot contain documents.
constexpr uint32_t kEndBlock = 0x7FFF;

}  // namespace

void DocSetCursor::Restart() {
  next_ = in_front_ = cardinality_ = 0;
  before_ = block_ = -1;
}

Result<std::optional<uint64_t>> DocSetCursor::IndexOf(uint32_t doc) {
  if (location_.offset == -2) return std::optional<uint64_t>();
  if (location_.offset == -1) return std::optional<uint64_t>(doc);
  const int64_t wanted = doc >> 16;
  if (wanted <= before_) Restart();
  while (block_ < wanted) MUSTER_TRY(NextBlock());
  const uint32_t in_block = doc & (kDocsPerBlock - 1);
  const uint64_t word = words_[in_block / 64];
  const uint32_t bit = in_block % 64;
  if (block_ != wanted || (word >> bit & 1) == 0) return std::optional<uint64_t>();
  const auto rank = static_cast<uint64_t>(std::popcount(word & ((1ULL << bit) - 1)));
  return std::optional<uint64_t>(in_front_ + ranks_[in_block / 64] + rank);
}

Status DocSetCursor::NextBlock() {
  MUSTER_ASSIGN(const std::string_view head, window_->At(next_, 4));
  ByteReader reader(head, window_->origin(), order_);
  const uint32_t block = reader.U16();
  const uint32_t cardinality = reader.U16() + 1U;
  if (block <= block_ && block_ >= 0) {
    return Error{Code::kCorrupt, window_->origin() + ": a set of documents that goes back"};
  }
  words_.assign(kWords, 0);
  in_front_ += cardinality_;
  before_ = block_;
  block_ = block;
  cardinality_ = cardinality;
  const uint64_t content = next_ + 4;
  if (block == kEndBlock && cardinality == 1) {
    cardinality_ = 0;
    block_ = INT64_MAX;
  } else if (cardinality <= kMostSparse) {
    MUSTER_TRY(ReadSparse(content, cardinality));
    next_ = content + 2ULL * cardinality;
  } else if (cardinality == kDocsPerBlock) {
    words_.assign(kWords, UINT64_MAX);
    next_ = content;
  } else {
    const int8_t power = location_.dense_rank_power;
    if (power < -1 || power > 16) {
      return Error{Code::kCorrupt, window_->origin() + ": an impossible table of ranks"};
    }
    const uint64_t ranks = power == -1 ? 0 : 2ULL * (kDocsPerBlock >> power);
    MUSTER_TRY(ReadWords(content + ranks));
    next_ = content + ranks + kWords * 8ULL;
  }
  ranks_.assign(kWords, 0);
  uint32_t rank = 0;
  for (uint32_t i = 0; i < kWords; ++i) {
    ranks_[i] = rank;
    rank += static_cast<uint32_t>(std::popcount(words_[i]));
  }
  if (rank == cardinality_) return {};
  return Error{Code::kCorrupt, window_->origin() + ": a set of another number of documents"};
}

Status DocSetCursor::ReadSparse(uint64_t offset, uint32_t cardinality) {
  MUSTER_ASSIGN(const std::string_view bytes, window_->At(offset, 2ULL * cardinality));
  ByteReader reader(bytes, window_->origin(), order_);
  for (uint32_t i = 0; i < cardinality; ++i) {
    const uint16_t doc = reader.U16();
    words_[doc / 64] |= 1ULL << doc % 64;
  }
  return reader.status();
}

Status DocSetCursor::ReadWords(uint64_t offset) {
  MUSTER_ASSIGN(const std::string_view bytes, window_->At(offset, kWords * 8ULL));
  ByteReader reader(bytes, window_->origin(), order_);
  for (uint64_t& word : words_) word = reader.U64();
  return reader.status();
}

}  // namespace muster::lucene
