#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lucene/doc_values_meta.h"
#include "lucene/file_window.h"

namespace muster::lucene {

// Walks the documents that have a value in a field, one block of 65536 documents in memory at a
// time. One thread at a time.
class DocSetCursor {
 public:
  // `window` is the location's part of `.dvd`; none if every document or no document has a value.
  DocSetCursor(const DocSetLocation& location, std::optional<FileWindow> window, ByteOrder order)
      : location_(location), window_(std::move(window)), order_(order) {}

  // The place of `doc` among those with a value; none if it has no value. Cheap if documents are
  // asked for in order; going back reads the set again from its start.
  Result<std::optional<uint64_t>> IndexOf(uint32_t doc);

 private:
  static constexpr uint32_t kWords = 1024;

  void Restart();
  Status NextBlock();
  Status ReadWords(uint64_t offset);
  Status ReadSparse(uint64_t offset, uint32_t cardinality);

  DocSetLocation location_;
  std::optional<FileWindow> window_;
  ByteOrder order_;
  uint64_t next_ = 0;      // the offset of the next block
  int64_t before_ = -1;    // the block before the current one
  int64_t block_ = -1;     // the current block
  uint64_t in_front_ = 0;  // documents in front of it
  uint64_t cardinality_ = 0;
  std::vector<uint64_t> words_ = {};
  std::vector<uint32_t> ranks_ = {};  // documents before each word
};

}  // namespace muster::lucene
