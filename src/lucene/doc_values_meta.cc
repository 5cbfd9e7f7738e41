#include "lucene/doc_values_meta.h"

#include <algorithm>
#include <string>

#include "lucene/codec.h"

namespace muster::lucene {
namespace {

// In Lucene 8.x this means "terms compressed with LZ4", in place of the block size.
constexpr int32_t kLz4TermsMark = 0x60001;
constexpr uint32_t kLz4BlockShift = 6;
constexpr int32_t kMaxTable = 256;

// Walks the entries of a `.dvm`. The format's number determines the layout.
class MetaParser {
 public:
  MetaParser(ByteReader reader, int format, uint32_t version)
      : reader_(std::move(reader)), format_(format), version_(version) {}

  Result<std::map<uint32_t, DocValuesEntry>> Parse(const std::vector<FieldInfo>& fields,
                                                   std::optional<uint32_t> only) {
    std::map<uint32_t, DocValuesEntry> entries;
    while (reader_.ok()) {
      const int32_t number = reader_.I32();
      if (number == -1) break;
      const auto field = std::find_if(fields.begin(), fields.end(), [&](const FieldInfo& it) {
        return static_cast<int64_t>(it.number) == number;
      });
      if (field == fields.end()) {
        reader_.Fail("values of a field that the segment does not have");
        break;
      }
      DocValuesEntry entry = ReadEntry(*field);
      const bool is_new = entries.emplace(field->number, std::move(entry)).second;
      reader_.Expect(is_new, "values of a field twice");
      if (field->number == only) break;
    }
    MUSTER_TRY(reader_.status());
    return entries;
  }

 private:
  DocValuesEntry ReadEntry(const FieldInfo& field) {
    DocValuesEntry entry;
    const uint8_t kind = reader_.U8();
    if (format_ == 90 && field.has_skip_index) reader_.Skip(version_ >= 2 ? 44 : 40);
    if (kind > static_cast<uint8_t>(DocValuesKind::kSortedNumeric)) {
      reader_.Fail("values of an unknown kind");
      return entry;
    }
    entry.kind = static_cast<DocValuesKind>(kind);
    switch (entry.kind) {
      case DocValuesKind::kNumeric:
        entry.numbers = Numbers();
        break;
      case DocValuesKind::kBinary:
        SkipBinary(field);
        break;
      case DocValuesKind::kSorted:
        Sorted(entry);
        break;
      case DocValuesKind::kSortedSet:
        SortedSet(entry);
        break;
      case DocValuesKind::kSortedNumeric:
        SortedNumeric(entry);
        break;
    }
    return entry;
  }

  DocSetLocation Documents() {
    DocSetLocation location;
    location.offset = reader_.I64();
    location.length = reader_.U64();
    if (format_ >= 80) {
      reader_.I16();
      location.dense_rank_power = static_cast<int8_t>(reader_.U8());
    }
    return location;
  }

  NumbersLocation Numbers() {
    NumbersLocation numbers{.docs = Documents()};
    numbers.docs.count = reader_.U64();
    const int32_t table = reader_.I32();
    reader_.Expect(table <= kMaxTable, "a table of too many numbers");
    for (int32_t i = 0; i < table && reader_.ok(); ++i) numbers.table.push_back(reader_.I64());
    if (table < -1) numbers.block_shift = -2 - table;
    reader_.Expect(numbers.block_shift <= 31, "numbers in blocks of an impossible size");
    numbers.bits = reader_.U8();
    reader_.Expect(numbers.bits <= 64 || numbers.block_shift >= 0, "numbers of more than 64 bits");
    numbers.min = reader_.I64();
    numbers.factor = reader_.I64();
    numbers.offset = reader_.U64();
    numbers.length = reader_.U64();
    if (format_ >= 80) reader_.Skip(8);
    return numbers;
  }

  DirectMonotonic Monotonic(uint64_t count) {
    const uint32_t shift = reader_.VInt();
    return DirectMonotonic::ReadMeta(reader_, count, shift);
  }

  AddressesLocation Addresses(uint32_t docs) {
    AddressesLocation addresses;
    addresses.offset = reader_.U64();
    addresses.numbers = Monotonic(docs + 1ULL);
    addresses.length = reader_.U64();
    return addresses;
  }

  void SortedNumeric(DocValuesEntry& entry) {
    entry.numbers = Numbers();
    const uint32_t docs = reader_.U32();
    if (docs != entry.numbers.docs.count) entry.addresses = Addresses(docs);
    entry.numbers.docs.count = docs;
  }

  void SkipBinary(const FieldInfo& field) {
    reader_.Skip(16);
    Documents();
    const uint32_t docs = reader_.U32();
    const int32_t min = reader_.I32();
    const int32_t max = reader_.I32();
    const bool packs =
        format_ == 80 && (version_ == 1 || (version_ >= 2 && field.compresses_binary));
    if (!((packs && docs > 0) || min < max)) return;
    reader_.Skip(8);
    uint64_t count = docs + 1ULL;
    if (packs) {
      count = reader_.VInt();
      reader_.VInt();
      reader_.VInt();
    }
    Monotonic(count);
    reader_.Skip(8);
  }

  TermsLocation Terms() {
    TermsLocation terms;
    terms.size = reader_.VLong();
    terms.block_shift = kLz4BlockShift;
    terms.packing = TermPacking::kLz4Dictionary;
    if (format_ < 90) {
      const int32_t shift = reader_.I32();
      const bool packs = format_ == 80 && shift == kLz4TermsMark;
      terms.packing = packs ? TermPacking::kLz4 : TermPacking::kNone;
      if (!packs) terms.block_shift = static_cast<uint32_t>(shift);
    }
    const uint32_t monotonic_shift = reader_.U32();
    if (terms.block_shift > 31) {
      reader_.Fail("terms in blocks of an impossible size");
      return terms;
    }
    terms.blocks =
        DirectMonotonic::ReadMeta(reader_, Blocks(terms.size, terms.block_shift), monotonic_shift);
    reader_.Skip(terms.packing == TermPacking::kNone ? 4 : 8);
    terms.offset = reader_.U64();
    terms.length = reader_.U64();
    terms.blocks_offset = reader_.U64();
    terms.blocks_length = reader_.U64();
    // The index of terms is only for finding one by its text.
    const uint32_t index_shift = reader_.U32();
    if (index_shift > 31) {
      reader_.Fail("terms in blocks of an impossible size");
      return terms;
    }
    DirectMonotonic::ReadMeta(reader_, 1 + Blocks(terms.size, index_shift), monotonic_shift);
    reader_.Skip(32);
    return terms;
  }

  void Sorted(DocValuesEntry& entry) {
    if (format_ == 90) {
      entry.numbers = Numbers();
    } else {
      entry.numbers.docs = Documents();
      entry.numbers.docs.count = reader_.U32();
      Places(entry.numbers);
    }
    entry.terms = Terms();
  }

  // The places of terms before Lucene 9: as they are, without a table or a factor.
  void Places(NumbersLocation& numbers) {
    numbers.bits = reader_.U8();
    reader_.Expect(numbers.bits <= 64, "numbers of more than 64 bits");
    numbers.offset = reader_.U64();
    numbers.length = reader_.U64();
  }

  void SortedSet(DocValuesEntry& entry) {
    const uint8_t multi = reader_.U8();
    if (multi == 0) return Sorted(entry);
    if (multi != 1) return reader_.Fail("a set of terms of an unknown kind");
    if (format_ == 90) {
      SortedNumeric(entry);
    } else {
      entry.numbers.docs = Documents();
      Places(entry.numbers);
      const uint32_t docs = reader_.U32();
      entry.numbers.docs.count = docs;
      entry.addresses = Addresses(docs);
    }
    entry.terms = Terms();
  }

  static uint64_t Blocks(uint64_t count, uint32_t shift) {
    return (count >> shift) + ((count & ((1ULL << shift) - 1)) != 0 ? 1 : 0);
  }

  ByteReader reader_;
  int format_;
  uint32_t version_;
};

}  // namespace

std::optional<int> DocValuesFormatOf(std::string_view codec) {
  for (const int format : {70, 80, 90}) {
    if (codec == "Lucene" + std::to_string(format) + "DocValuesMetadata") return format;
  }
  return std::nullopt;
}

Result<std::map<uint32_t, DocValuesEntry>> ParseDocValuesMeta(ByteReader reader, int format,
                                                              uint32_t version,
                                                              const std::vector<FieldInfo>& fields,
                                                              std::optional<uint32_t> only) {
  return MetaParser(std::move(reader), format, version).Parse(fields, only);
}

std::string DocValuesStem(const FieldInfo& field) {
  std::string stem = "_" + field.doc_values_format + "_" + field.doc_values_suffix;
  if (field.doc_values_gen < 0) return stem;
  return "_" + ToBase36(static_cast<uint64_t>(field.doc_values_gen)) + stem;
}

}  // namespace muster::lucene
