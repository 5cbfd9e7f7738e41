#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace muster::lucene {

// A set of the documents 0..size-1 of a segment, a bit each.
class DocSet {
 public:
  explicit DocSet(uint32_t size = 0, bool full = false)
      : size_(size), words_((size + 63ULL) / 64, full ? UINT64_MAX : 0) {
    if (full && size % 64 != 0) words_.back() = (1ULL << size % 64) - 1;
  }

  uint32_t size() const { return size_; }
  bool Has(uint32_t doc) const { return (words_[doc / 64] >> doc % 64 & 1) != 0; }
  void Add(uint32_t doc) { words_[doc / 64] |= 1ULL << doc % 64; }
  void Remove(uint32_t doc) { words_[doc / 64] &= ~(1ULL << doc % 64); }

  uint64_t Count() const {
    uint64_t count = 0;
    for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }

  // Removes the members of `other`, which has the same size.
  void RemoveAll(const DocSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }

 private:
  uint32_t size_;
  std::vector<uint64_t> words_;
};

}  // namespace muster::lucene
