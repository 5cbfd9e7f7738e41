#include "lucene/segments.h"

#include <algorithm>
#include <optional>

#include "lucene/codec.h"

namespace muster::lucene {
namespace {

constexpr uint32_t kNewestFormat = 10;
constexpr size_t kIdBytes = 16;
// No segment takes less in any format.
constexpr size_t kLeastSegmentBytes = 14;
constexpr uint64_t kMaxSegmentsBytes = 64 * 1024 * 1024;

// Sets and maps of strings begin with a fixed-width count until Lucene 5.0, with a vint since.
void SkipTexts(ByteReader& reader, bool is_new, int texts_each) {
  const uint64_t count = is_new ? reader.VInt() : reader.U32();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    for (int text = 0; text < texts_each; ++text) reader.String();
  }
}

void SkipSet(ByteReader& reader, bool is_new) { SkipTexts(reader, is_new, 1); }
void SkipMap(ByteReader& reader, bool is_new) { SkipTexts(reader, is_new, 2); }

void SkipUpdates(ByteReader& reader, uint32_t format) {
  if (format == 0) return;
  if (format >= 3) SkipSet(reader, format >= 5);
  const uint32_t count = reader.U32();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    reader.Skip(format >= 3 ? 4 : 8);
    SkipSet(reader, format >= 5);
  }
}

SegmentCommit ReadSegment(ByteReader& reader, uint32_t format) {
  SegmentCommit segment;
  segment.name = reader.String();
  if (format >= 7 || (format >= 4 && reader.U8() == 1)) segment.id = reader.Take(kIdBytes);
  reader.String();
  segment.delete_gen = reader.I64();
  segment.delete_count = reader.I32();
  if (format >= 1) segment.field_infos_gen = reader.I64();
  if (format >= 3) reader.I64();
  if (format >= 9) segment.soft_delete_count = reader.I32();
  if (format >= 10 && reader.U8() == 1) reader.Skip(kIdBytes);
  SkipUpdates(reader, format);
  if (!IsPlainName(segment.name)) reader.Fail("a segment without a usable name");
  return segment;
}

// The version decides where the content ends, so it is read before checking the CRC.
Result<std::string_view> CheckedContent(std::string_view file, uint32_t format,
                                        std::string_view origin) {
  if (format >= 2) return CheckFooter(file, origin);
  if (file.size() < 8) return Error{Code::kCorrupt, std::string(origin) + ": too short"};
  ByteReader crc(file.substr(file.size() - 8), origin);
  if (crc.BigU64() != Crc32(0, file.substr(0, file.size() - 8))) {
    return Error{Code::kCorrupt, std::string(origin) + ": its CRC-32 is wrong"};
  }
  return file.substr(0, file.size() - 8);
}

bool FlagOf(ByteReader& reader) {
  const uint8_t flag = reader.U8();
  reader.Expect(flag == 1 || flag == 0xFF || flag == 0, "an invalid flag");
  return flag == 1;
}

// The codecs of `.si`, by format change.
std::optional<int> SegmentInfoFormat(std::string_view codec) {
  constexpr std::string_view kPrefix = "Lucene";
  constexpr std::string_view kSuffix = "SegmentInfo";
  if (!codec.starts_with(kPrefix) || !codec.ends_with(kSuffix)) return std::nullopt;
  codec.remove_prefix(kPrefix.size());
  codec.remove_suffix(kSuffix.size());
  for (const int format : {40, 46, 50, 62, 70, 86, 90}) {
    if (codec == std::to_string(format)) return format;
  }
  return std::nullopt;
}

// The byte after isCompound was added in Lucene 9.9, under the same name and version.
bool HasBlocksFlag(int format, uint32_t major, uint32_t minor) {
  return format == 90 && (major > 9 || (major == 9 && minor >= 9));
}

void ReadVersion(ByteReader& reader, int format, SegmentInfo& info, bool& has_blocks) {
  if (format < 50) {
    info.lucene_version = reader.String();
    return;
  }
  const uint32_t major = reader.U32();
  const uint32_t minor = reader.U32();
  const uint32_t bugfix = reader.U32();
  info.lucene_version =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(bugfix);
  has_blocks = HasBlocksFlag(format, major, minor);
  if (format >= 70 && FlagOf(reader)) reader.Skip(12);
}

}  // namespace

Result<std::vector<SegmentCommit>> ParseSegments(std::string_view file, std::string_view origin) {
  ByteReader start(file, origin);
  const CodecHeader header = ReadHeader(start);
  if (start.ok() && (header.codec != "segments" || header.version > kNewestFormat)) {
    start.Fail(
        "'" + header.codec + "' version " + std::to_string(header.version) + " is not understood",
        Code::kIncompatible);
  }
  MUSTER_TRY(start.status());
  const uint32_t format = header.version;
  MUSTER_ASSIGN(const std::string_view content, CheckedContent(file, format, origin));
  ByteReader reader(content, origin);
  reader.SeekTo(start.offset());
  CodecHeader rest;
  if (format >= 4) ReadIndexHeaderRest(reader, rest);
  if (format >= 6) {
    for (int i = 0; i < 3; ++i) reader.VInt();
  }
  if (format >= 7) reader.VInt();
  reader.I64();
  if (format >= 8) {
    reader.VLong();
  } else {
    reader.I32();
  }
  const uint32_t count = reader.U32();
  reader.Expect(count <= reader.left() / kLeastSegmentBytes, "more segments than it has room for");
  if (format >= 6 && count > 0) {
    for (int i = 0; i < 3; ++i) reader.VInt();
  }
  std::vector<SegmentCommit> segments;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    segments.push_back(ReadSegment(reader, format));
  }
  SkipMap(reader, format >= 5);
  reader.Expect(reader.left() == 0, "more bytes than a commit has");
  MUSTER_TRY(reader.status());
  return segments;
}

Result<std::vector<SegmentCommit>> ReadSegments(const ShardDirectory& directory) {
  constexpr std::string_view kPrefix = "segments_";
  std::optional<uint64_t> newest;
  for (const auto& [name, file] : directory.files()) {
    if (!name.starts_with(kPrefix)) continue;
    if (const auto number = ParseBase36(std::string_view(name).substr(kPrefix.size()))) {
      newest = std::max(newest.value_or(0), *number);
    }
  }
  if (!newest)
    return Error{Code::kCorrupt, directory.origin() + ": the snapshot has no segments_N"};
  MUSTER_ASSIGN(const ShardFileView file, directory.Open(std::string(kPrefix) + ToBase36(*newest)));
  if (file.length() > kMaxSegmentsBytes) {
    return Error{Code::kIncompatible, file.origin() + ": too large to be a commit"};
  }
  MUSTER_ASSIGN(const std::string bytes, file.Read(0, file.length()));
  return ParseSegments(bytes, file.origin());
}

Result<SegmentInfo> ParseSegmentInfo(std::string_view file, std::string_view segment_id,
                                     std::string_view origin) {
  ByteReader start(file, origin);
  CodecHeader header = ReadHeader(start);
  const auto format = SegmentInfoFormat(header.codec);
  if (start.ok() && !format) {
    start.Fail("segment info of kind '" + header.codec + "' is not understood",
               Code::kIncompatible);
  }
  MUSTER_TRY(start.status());
  const bool has_footer = *format >= 50 || (*format == 46 && header.version >= 1);
  if (header.version > 1) {
    start.Fail(
        "'" + header.codec + "' version " + std::to_string(header.version) + " is not understood",
        Code::kIncompatible);
    MUSTER_TRY(start.status());
  }
  std::string_view content = file;
  if (has_footer) {
    MUSTER_ASSIGN(content, CheckFooter(file, origin));
  }
  ByteReader reader(content, origin, OrderOf(header.codec));
  reader.SeekTo(start.offset());
  if (*format >= 50) ReadIndexHeaderRest(reader, header);
  reader.Expect(header.id == segment_id || segment_id.empty(), "it belongs to another segment");
  SegmentInfo info;
  bool has_blocks = false;
  ReadVersion(reader, *format, info, has_blocks);
  info.max_doc = reader.I32();
  reader.Expect(info.max_doc >= 0, "a negative number of documents");
  info.is_compound = FlagOf(reader);
  if (has_blocks) FlagOf(reader);
  // Diagnostics, then files and attributes in either order; the index sort that follows does not
  // matter here.
  const bool is_new = *format > 50 || (*format == 50 && header.version >= 1);
  SkipMap(reader, is_new);
  if (*format == 40) SkipMap(reader, is_new);
  SkipSet(reader, is_new);
  if (*format >= 50) SkipMap(reader, is_new);
  MUSTER_TRY(reader.status());
  return info;
}

}  // namespace muster::lucene
