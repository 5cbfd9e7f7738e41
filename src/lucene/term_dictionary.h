#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/doc_values_meta.h"
#include "lucene/file_window.h"

namespace muster::lucene {

// The terms of a field, by their place in order. Keeps one block of them in memory. One thread at a
// time.
class TermDictionary {
 public:
  // `terms` and `blocks` are the location's parts of `.dvd`.
  TermDictionary(TermsLocation location, FileWindow terms, FileWindow blocks, ByteOrder order)
      : location_(std::move(location)),
        terms_(std::move(terms)),
        blocks_(std::move(blocks)),
        order_(order) {}

  // Valid until the next call. kCorrupt: there is no such term.
  Result<std::string_view> At(uint64_t place);

 private:
  Status ReadBlock(uint64_t block);
  Status Unpack(ByteReader& reader);
  Status ReadTerms(ByteReader& reader, uint64_t count);

  TermsLocation location_;
  FileWindow terms_;
  FileWindow blocks_;
  ByteOrder order_;
  std::optional<uint64_t> block_ = {};  // the one in memory
  std::string text_ = {};               // its terms, one after the other
  std::vector<size_t> ends_ = {};
  std::string packed_ = {};  // its terms but the first, as unpacked
};

}  // namespace muster::lucene
