#include "lucene/field_infos.h"

namespace muster::lucene {
namespace {

constexpr uint64_t kMaxBytes = 256 * 1024 * 1024;
constexpr uint8_t kSoftDeletesFlag = 0x08;

std::optional<int> FormatOf(std::string_view codec) {
  for (const int format : {40, 42, 46, 50, 60, 90, 94}) {
    if (codec == "Lucene" + std::to_string(format) + "FieldInfos") return format;
  }
  return std::nullopt;
}

uint32_t NewestVersion(int format) {
  switch (format) {
    case 50:
      return 1;
    case 46:
    case 60:
    case 94:
      return 2;
    default:
      return 0;
  }
}

void ReadAttributes(ByteReader& reader, bool is_new, FieldInfo& field) {
  const uint64_t count = is_new ? reader.VInt() : reader.U32();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    const std::string_view key = reader.String();
    const std::string_view value = reader.String();
    if (key == "PerFieldDocValuesFormat.format") field.doc_values_format = value;
    if (key == "PerFieldDocValuesFormat.suffix") field.doc_values_suffix = value;
    if (key == "Lucene80DocValuesFormat.mode") {
      field.compresses_binary = value == "BEST_COMPRESSION";
    }
  }
}

FieldInfo ReadField(ByteReader& reader, int format, uint32_t version) {
  FieldInfo field;
  field.name = reader.String();
  field.number = reader.VInt();
  const uint8_t flags = reader.U8();
  const bool can_soft_delete = (format == 60 && version >= 1) || format >= 90;
  field.is_soft_deletes = can_soft_delete && (flags & kSoftDeletesFlag) != 0;
  if (format >= 50) reader.U8();
  field.doc_values_type = format >= 50 ? reader.U8() : reader.U8() & 15;
  if (format == 94 && version >= 2) field.has_skip_index = reader.U8() != 0;
  if (format >= 46) field.doc_values_gen = reader.I64();
  ReadAttributes(reader, format > 50 || (format == 50 && version >= 1), field);
  if (format < 60) return field;
  if (reader.VInt() != 0) {
    if (format >= 90 || version >= 2) reader.VInt();
    reader.VInt();
  }
  if (format < 90) return field;
  reader.VInt();
  if (format >= 94) reader.U8();
  reader.U8();
  return field;
}

}  // namespace

Result<std::vector<FieldInfo>> ParseFieldInfos(std::string_view file, std::string_view segment_id,
                                               std::string_view origin) {
  ByteReader start(file, origin);
  CodecHeader header = ReadHeader(start);
  const auto format = FormatOf(header.codec);
  if (start.ok() && (!format || header.version > NewestVersion(*format))) {
    start.Fail("field infos of kind '" + header.codec + "' version " +
                   std::to_string(header.version) + " are not understood",
               Code::kIncompatible);
  }
  MUSTER_TRY(start.status());
  std::string_view content = file;
  if (*format >= 50 || (*format == 46 && header.version >= 1)) {
    MUSTER_ASSIGN(content, CheckFooter(file, origin));
  }
  ByteReader reader(content, origin, OrderOf(header.codec));
  reader.SeekTo(start.offset());
  if (*format >= 50) {
    ReadIndexHeaderRest(reader, header);
    reader.Expect(header.id == segment_id, "it belongs to another segment");
  }
  std::vector<FieldInfo> fields;
  const size_t count = reader.Count(4);
  for (size_t i = 0; i < count && reader.ok(); ++i) {
    fields.push_back(ReadField(reader, *format, header.version));
  }
  reader.Expect(reader.left() == 0, "more bytes than it has fields");
  MUSTER_TRY(reader.status());
  return fields;
}

Result<std::vector<FieldInfo>> ReadFieldInfos(const SegmentFiles& files) {
  const int64_t gen = files.commit().field_infos_gen;
  MUSTER_ASSIGN(const ShardFileView file,
                files.Find(gen < 0 ? ".fnm" : "_" + ToBase36(static_cast<uint64_t>(gen)) + ".fnm"));
  if (file.length() > kMaxBytes) {
    return Error{Code::kIncompatible, file.origin() + ": too large to be field infos"};
  }
  MUSTER_ASSIGN(const std::string bytes, file.Read(0, file.length()));
  return ParseFieldInfos(bytes, files.commit().id, file.origin());
}

}  // namespace muster::lucene
