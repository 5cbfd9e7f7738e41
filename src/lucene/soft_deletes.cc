#include "lucene/soft_deletes.h"

namespace muster::lucene {
namespace {

constexpr uint32_t kBlockDocs = 65536;
constexpr uint32_t kMaxSparse = 4095;
constexpr uint64_t kMaxDocSetBytes = 512 * 1024 * 1024;

const FieldInfo* SoftDeletesField(const std::vector<FieldInfo>& fields) {
  for (const FieldInfo& field : fields) {
    if (field.is_soft_deletes || field.name == "__soft_deletes") return &field;
  }
  return nullptr;
}

}  // namespace

Result<DocSetLocation> FindNumericField(ByteReader reader, int format, uint32_t version,
                                        const std::vector<FieldInfo>& fields, uint32_t number) {
  const std::string origin(reader.origin());
  MUSTER_ASSIGN(const auto entries,
                ParseDocValuesMeta(std::move(reader), format, version, fields, number));
  const auto found = entries.find(number);
  if (found == entries.end()) {
    return Error{Code::kCorrupt, origin + ": no values for the field of soft deletes"};
  }
  if (found->second.kind != DocValuesKind::kNumeric) {
    return Error{Code::kCorrupt, origin + ": the field of soft deletes is not numeric"};
  }
  return found->second.numbers.docs;
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
  const std::string stem = DocValuesStem(*field);
  MUSTER_ASSIGN(const ShardFileView dvm, files.Find(stem + ".dvm"));
  MUSTER_ASSIGN(const OpenedFile meta, OpenChecked(dvm, files.commit().id));
  const auto format = DocValuesFormatOf(meta.header.codec);
  if (!format || meta.header.version > kDocValuesVersion) {
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
