#include "lucene/soft_deletes.h"

#include <algorithm>

#include "lucene/packed_ints.h"

namespace muster::lucene {
namespace {

constexpr uint32_t kBlockDocs = 65536;
constexpr uint32_t kMaxSparse = 4095;
constexpr uint64_t kMaxDocSetBytes = 512 * 1024 * 1024;
// In Lucene 8.x this means "terms compressed with LZ4", in place of the block size.
constexpr int32_t kLz4TermsMark = 0x60001;

// Walks the entries of a `.dvm`. The format's number determines the layout.
class DocValuesMeta {
 public:
  DocValuesMeta(ByteReader reader, int format, uint32_t version)
      : reader_(std::move(reader)), format_(format), version_(version) {}

  Result<DocSetLocation> Find(const std::vector<FieldInfo>& fields, uint32_t number) {
    while (reader_.ok()) {
      const int32_t field_number = reader_.I32();
      if (field_number == -1) break;
      const auto field = std::find_if(fields.begin(), fields.end(), [&](const FieldInfo& it) {
        return static_cast<int64_t>(it.number) == field_number;
      });
      if (field == fields.end()) {
        reader_.Fail("values of a field that the segment does not have");
        break;
      }
      const uint8_t kind = reader_.U8();
      if (format_ == 90 && field->has_skip_index) reader_.Skip(version_ >= 2 ? 44 : 40);
      if (field->number == number) {
        reader_.Expect(kind == 0, "the field of soft deletes is not numeric");
        const DocSetLocation location = Numeric();
        MUSTER_TRY(reader_.status());
        return location;
      }
      SkipEntry(kind, *field);
    }
    reader_.Fail("no values for the field of soft deletes");
    return reader_.status().error();
  }

 private:
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

  DocSetLocation Numeric() {
    DocSetLocation location = Documents();
    location.count = reader_.U64();
    const int32_t table = reader_.I32();
    if (table > 0) reader_.Skip(static_cast<uint64_t>(table) * 8);
    reader_.Skip(1 + 8 + 8 + 8 + 8 + (format_ >= 80 ? 8 : 0));
    return location;
  }

  void Monotonic(uint64_t count) { DirectMonotonic::ReadMeta(reader_, count, reader_.VInt()); }

  void SortedNumeric() {
    const uint64_t values = Numeric().count;
    const uint32_t docs = reader_.U32();
    if (docs == values) return;
    reader_.Skip(8);
    Monotonic(docs + 1ULL);
    reader_.Skip(8);
  }

  void Binary(const FieldInfo& field) {
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

  void Terms() {
    const uint64_t size = reader_.VLong();
    uint32_t block_shift = 6;
    bool packs = format_ == 90;
    if (format_ < 90) {
      const int32_t shift = reader_.I32();
      packs = format_ == 80 && shift == kLz4TermsMark;
      if (!packs) block_shift = static_cast<uint32_t>(shift);
    }
    const uint32_t monotonic_shift = reader_.U32();
    if (block_shift > 31) return reader_.Fail("terms in blocks of an impossible size");
    DirectMonotonic::ReadMeta(reader_, Blocks(size, block_shift), monotonic_shift);
    reader_.Skip(4 + (packs ? 4 : 0) + 32);
    const uint32_t index_shift = reader_.U32();
    if (index_shift > 31) return reader_.Fail("terms in blocks of an impossible size");
    DirectMonotonic::ReadMeta(reader_, 1 + Blocks(size, index_shift), monotonic_shift);
    reader_.Skip(32);
  }

  void Sorted() {
    if (format_ == 90) {
      Numeric();
    } else {
      Documents();
      reader_.Skip(4 + 1 + 16);
    }
    Terms();
  }

  void SortedSet() {
    const uint8_t multi = reader_.U8();
    if (multi == 0) return Sorted();
    if (multi != 1) return reader_.Fail("a set of terms of an unknown kind");
    if (format_ == 90) {
      SortedNumeric();
    } else {
      Documents();
      reader_.Skip(1 + 16);
      const uint32_t docs = reader_.U32();
      reader_.Skip(8);
      Monotonic(docs + 1ULL);
      reader_.Skip(8);
    }
    Terms();
  }

  void SkipEntry(uint8_t kind, const FieldInfo& field) {
    switch (kind) {
      case 0:
        Numeric();
        return;
      case 1:
        return Binary(field);
      case 2:
        return Sorted();
      case 3:
        return SortedSet();
      case 4:
        return SortedNumeric();
      default:
        reader_.Fail("values of an unknown kind");
    }
  }

  static uint64_t Blocks(uint64_t count, uint32_t shift) {
    return (count >> shift) + ((count & ((1ULL << shift) - 1)) != 0 ? 1 : 0);
  }

  ByteReader reader_;
  int format_;
  uint32_t version_;
};

std::optional<int> FormatOf(std::string_view codec) {
  for (const int format : {70, 80, 90}) {
    if (codec == "Lucene" + std::to_string(format) + "DocValuesMetadata") return format;
  }
  return std::nullopt;
}

const FieldInfo* SoftDeletesField(const std::vector<FieldInfo>& fields) {
  for (const FieldInfo& field : fields) {
    if (field.is_soft_deletes || field.name == "__soft_deletes") return &field;
  }
  return nullptr;
}

}  // namespace

Result<DocSetLocation> FindNumericField(ByteReader reader, int format, uint32_t version,
                                        const std::vector<FieldInfo>& fields, uint32_t number) {
  return DocValuesMeta(std::move(reader), format, version).Find(fields, number);
}

Result<DocSet> ParseDocSet(std::string_view bytes, ByteOrder order, const DocSetLocation& location,
                           uint32_t max_doc, std::string_view origin) {
  ByteReader reader(bytes, origin, order, static_cast<uint64_t>(location.offset));
  DocSet docs(max_doc);
  const auto add = [&](uint32_t doc) {
    if (doc < max_doc) {
      docs.Add(doc);
    } else {
      reader.Fail("documents beyond the last one");
    }
  };
  while (reader.ok()) {
    const uint32_t block = reader.U16();
    const uint32_t count = reader.U16() + 1U;
    const uint32_t first = block << 16;
    // The list ends with a block that cannot contain documents.
    if (block == 0x7FFF && count == 1) break;
    if (count <= kMaxSparse) {
      for (uint32_t i = 0; i < count && reader.ok(); ++i) add(first | reader.U16());
    } else if (count == kBlockDocs) {
      for (uint32_t i = 0; i < kBlockDocs && reader.ok(); ++i) add(first | i);
    } else {
      const int8_t power = location.dense_rank_power;
      if (power != -1) {
        reader.Expect(power >= 0 && power <= 16, "an impossible table of ranks");
        if (reader.ok()) reader.Skip(2 * (kBlockDocs >> power));
      }
      for (uint32_t word = 0; word < kBlockDocs / 64 && reader.ok(); ++word) {
        const uint64_t bits = reader.U64();
        for (uint32_t bit = 0; bit < 64 && bits >> bit != 0; ++bit) {
          if ((bits >> bit & 1) != 0) add(first | (word * 64 + bit));
        }
      }
    }
  }
  reader.Expect(docs.Count() == location.count, "a set of another number of documents");
  MUSTER_TRY(reader.status());
  return docs;
}

Result<std::optional<DocSet>> ReadSoftDeletes(const SegmentFiles& files,
                                              const std::vector<FieldInfo>& fields) {
  const FieldInfo* field = SoftDeletesField(fields);
  if (field == nullptr || field->doc_values_type == 0) return std::optional<DocSet>();
  std::string stem = "_" + field->doc_values_format + "_" + field->doc_values_suffix;
  if (field->doc_values_gen >= 0) {
    stem = "_" + ToBase36(static_cast<uint64_t>(field->doc_values_gen)) + stem;
  }
  MUSTER_ASSIGN(const ShardFileView dvm, files.Find(stem + ".dvm"));
  MUSTER_ASSIGN(const OpenedFile meta, OpenChecked(dvm, files.commit().id));
  const auto format = FormatOf(meta.header.codec);
  if (!format || meta.header.version > 2) {
    return Error{Code::kIncompatible, dvm.origin() + ": doc values of kind '" + meta.header.codec +
                                          "' version " + std::to_string(meta.header.version) +
                                          " are not understood"};
  }
  MUSTER_ASSIGN(const DocSetLocation location,
                FindNumericField(meta.Reader(dvm.origin()), *format, meta.header.version, fields,
                                 field->number));
  const auto max_doc = static_cast<uint32_t>(files.info().max_doc);
  if (location.offset == -2) return std::optional<DocSet>();
  if (location.offset == -1) return std::optional<DocSet>(DocSet(max_doc, /*full=*/true));
  MUSTER_ASSIGN(const ShardFileView dvd, files.Find(stem + ".dvd"));
  if (location.offset < 0 || location.length > kMaxDocSetBytes) {
    return Error{Code::kCorrupt, dvm.origin() + ": a set of documents at an impossible place"};
  }
  MUSTER_ASSIGN(const std::string bytes,
                dvd.Read(static_cast<uint64_t>(location.offset), location.length));
  MUSTER_ASSIGN(DocSet docs,
                ParseDocSet(bytes, OrderOf(meta.header.codec), location, max_doc, dvd.origin()));
  return std::optional<DocSet>(std::move(docs));
}

}  // namespace muster::lucene
