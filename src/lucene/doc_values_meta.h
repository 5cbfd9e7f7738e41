#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "lucene/field_infos.h"
#include "lucene/packed_ints.h"

namespace muster::lucene {

// The location in `.dvd` of the documents that have a value in a field.
struct DocSetLocation {
  int64_t offset = 0;  // -2: no document, -1: every document
  uint64_t length = 0;
  int8_t dense_rank_power = -1;
  uint64_t count = 0;  // documents in the set
};

// Numbers in the order of the documents that have them.
struct NumbersLocation {
  DocSetLocation docs = {};         // its count is that of numbers
  std::vector<int64_t> table = {};  // if not empty, what is stored are places in it
  int32_t block_shift = -1;  // not -1: blocks of 2^this numbers, each with a width of its own
  uint8_t bits = 0;
  int64_t min = 0;
  int64_t factor = 1;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Where the numbers of each document start, if some have several.
struct AddressesLocation {
  DirectMonotonic numbers;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// How blocks of terms are packed, after their first term.
enum class TermPacking { kNone, kLz4, kLz4Dictionary };

struct TermsLocation {
  uint64_t size = 0;  // number of terms
  uint32_t block_shift = 0;
  TermPacking packing = TermPacking::kNone;
  DirectMonotonic blocks;  // where each block starts
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t blocks_offset = 0;
  uint64_t blocks_length = 0;
};

enum class DocValuesKind : uint8_t { kNumeric, kBinary, kSorted, kSortedSet, kSortedNumeric };

// The description of one field's values. Of binary ones nothing is kept.
struct DocValuesEntry {
  DocValuesKind kind = DocValuesKind::kNumeric;
  NumbersLocation numbers;  // of sorted ones places in `terms`
  std::optional<AddressesLocation> addresses;
  TermsLocation terms;
};

// The format (70, 80 or 90) by the codec name of a `.dvm`; none: unknown.
std::optional<int> DocValuesFormatOf(std::string_view codec);

// The newest version of those formats that is understood.
constexpr uint32_t kDocValuesVersion = 2;

// Parses the body of a `.dvm` of Lucene 7 to 10, by field number. If `only` is given, it stops
// after that field.
Result<std::map<uint32_t, DocValuesEntry>> ParseDocValuesMeta(
    ByteReader reader, int format, uint32_t version, const std::vector<FieldInfo>& fields,
    std::optional<uint32_t> only = std::nullopt);

// The name of a field's doc-values files without the segment's name and the extension.
std::string DocValuesStem(const FieldInfo& field);

}  // namespace muster::lucene
