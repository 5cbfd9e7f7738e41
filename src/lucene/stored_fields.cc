#include "lucene/stored_fields.h"

#include <algorithm>
#include <optional>

namespace muster::lucene {
namespace {

// Longer than any header with what may follow it.
constexpr uint64_t kHeaderBytes = 512;
constexpr uint64_t kMaxChunkBytes = 1ULL << 31;
// Window for a single chunk; larger only if the next ones are read too.
constexpr uint64_t kFirstWindow = 32 * 1024;
// Memory kept after one huge document.
constexpr uint64_t kMostKept = 4 * 1024 * 1024;
constexpr uint64_t kMaxIndexBytes = 512 * 1024 * 1024;

struct Format {
  std::string_view codec;
  uint32_t oldest;
  uint32_t newest;
  Packing packing;
};

constexpr Format kFormats[] = {
    {"Lucene41StoredFieldsData", 0, 2, Packing::kLz4},
    {"Lucene50StoredFieldsFastData", 0, 2, Packing::kLz4},
    {"Lucene50StoredFieldsHighData", 0, 2, Packing::kDeflate},
    {"Lucene87StoredFieldsFastData", 3, 4, Packing::kLz4Dictionary},
    {"Lucene87StoredFieldsHighData", 3, 4, Packing::kDeflateDictionary},
    {"Lucene90StoredFieldsFastData", 1, 1, Packing::kLz4Dictionary},
    {"Lucene90StoredFieldsHighData", 1, 1, Packing::kDeflateDictionary},
    {"ZstdStoredFields814", 1, 1, Packing::kZstd},
    {"CustomStoredFieldsZstd", 1, 1, Packing::kZstdDictionary},
    {"CustomStoredFieldsZstdNoDict", 1, 1, Packing::kZstdBlocks},
};

const Format* FormatOf(const CodecHeader& header) {
  for (const Format& format : kFormats) {
    if (header.codec == format.codec && header.version >= format.oldest &&
        header.version <= format.newest) {
      return &format;
    }
  }
  return nullptr;
}

void CheckPackedVersion(ByteReader& reader) {
  const uint32_t version = reader.VInt();
  if (reader.ok() && (version < 1 || version > 2)) {
    reader.Fail("packed numbers of version " + std::to_string(version) + " are not understood",
                Code::kIncompatible);
  }
}

}  // namespace

Result<StoredFields> StoredFields::Open(const SegmentFiles& files) {
  MUSTER_ASSIGN(const ShardFileView fdt, files.Find(".fdt"));
  StoredFields fields(fdt, static_cast<uint32_t>(files.info().max_doc));
  MUSTER_ASSIGN(const std::string start, fdt.Read(0, std::min(kHeaderBytes, fdt.length())));
  ByteReader reader(start, fdt.origin());
  CodecHeader header = ReadHeader(reader);
  const Format* format = FormatOf(header);
  if (reader.ok() && format == nullptr) {
    reader.Fail("stored fields of kind '" + header.codec + "' version " +
                    std::to_string(header.version) + " are not understood",
                Code::kIncompatible);
  }
  MUSTER_TRY(reader.status());
  const bool is_41 = header.codec.starts_with("Lucene41");
  const bool is_50 = header.codec.starts_with("Lucene50");
  const bool is_87 = header.codec.starts_with("Lucene87");
  if (!is_41) {
    ReadIndexHeaderRest(reader, header);
    reader.Expect(header.id == files.commit().id, "it belongs to another segment");
  }
  fields.format_.packing = format->packing;
  fields.format_.order = OrderOf(header.codec);
  fields.format_.slices_by_size = is_41;
  fields.format_.never_slices = is_41 && header.version == 0;
  fields.format_.token_flags = is_41 ? 0 : is_50 || (is_87 && header.version == 3) ? 1 : 2;
  fields.has_footer_ = !is_41 || header.version >= 2;
  if ((is_41 && header.version >= 1) || is_50) fields.format_.chunk_size = reader.VInt();
  if (is_41 || is_50) CheckPackedVersion(reader);
  MUSTER_TRY(reader.status());
  if (is_41 || (is_50 && header.version < 2)) {
    MUSTER_TRY(fields.ReadBlockIndexed(files, header.codec, header.version));
  } else {
    MUSTER_TRY(fields.ReadMonotonicIndexed(files, header.version));
  }
  const uint64_t limit =
      fdt.length() - std::min(fdt.length(), fields.has_footer_ ? kFooterBytes : 0);
  MUSTER_TRY(fields.index_.Check(reader.offset(), limit, fields.max_doc_, fdt.origin()));
  fields.crc_ = Crc32(0, std::string_view(start).substr(0, reader.offset()));
  return fields;
}

Status StoredFields::ReadBlockIndexed(const SegmentFiles& files, const std::string& codec,
                                      uint32_t version) {
  MUSTER_ASSIGN(const ShardFileView fdx, files.Find(".fdx"));
  std::string expected = codec.substr(0, codec.size() - std::string_view("Data").size()) + "Index";
  if (codec.starts_with("Lucene50")) {
    MUSTER_ASSIGN(const OpenedFile file, OpenChecked(fdx, files.commit().id));
    ByteReader reader = file.Reader(fdx.origin());
    reader.Expect(file.header.codec == expected, "not the index of these stored fields");
    index_ = ReadBlockIndex(reader);
    index_.end = reader.VLong();
    reader.Expect(reader.left() == 0, "more bytes than it has chunks");
    return reader.status();
  }
  if (fdx.length() > kMaxIndexBytes) {
    return Error{Code::kIncompatible, fdx.origin() + ": too large to be an index of chunks"};
  }
  MUSTER_ASSIGN(const std::string bytes, fdx.Read(0, fdx.length()));
  std::string_view content = bytes;
  if (has_footer_) {
    MUSTER_ASSIGN(content, CheckFooter(bytes, fdx.origin()));
  }
  ByteReader reader(content, fdx.origin());
  reader.Expect(ReadHeader(reader).codec == expected, "not the index of these stored fields");
  index_ = ReadBlockIndex(reader);
  // Before version 2 nothing follows the last chunk.
  index_.end = version >= 2 ? reader.VLong() : fdt_.length();
  reader.Expect(reader.left() == 0, "more bytes than it has chunks");
  return reader.status();
}

Status StoredFields::ReadMonotonicIndexed(const SegmentFiles& files, uint32_t version) {
  MUSTER_ASSIGN(const ShardFileView fdm, files.Find(".fdm"));
  MUSTER_ASSIGN(const ShardFileView fdx, files.Find(".fdx"));
  MUSTER_ASSIGN(const OpenedFile meta, OpenChecked(fdm, files.commit().id));
  MUSTER_ASSIGN(const OpenedFile data, OpenChecked(fdx, files.commit().id));
  const bool is_90 = format_.order == ByteOrder::kLittle;
  const std::string prefix = is_90 ? "Lucene90FieldsIndex" : "Lucene85FieldsIndex";
  ByteReader reader = meta.Reader(fdm.origin());
  if (meta.header.codec != prefix + "Meta" || data.header.codec != prefix + "Idx") {
    reader.Fail("an index of kind '" + meta.header.codec + "' is not understood",
                Code::kIncompatible);
  }
  if (is_90 || version >= 3) format_.chunk_size = reader.VInt();
  if (!is_90 && version >= 3) CheckPackedVersion(reader);
  const MonotonicIndex index = MonotonicIndex::ReadMeta(reader, max_doc_);
  if (is_90 || version >= 4) reader.VLong();
  if (is_90 || version >= 3) {
    reader.VLong();
    reader.VLong();
  }
  reader.Expect(reader.left() == 0, "more bytes than an index has");
  MUSTER_TRY(reader.status());
  MUSTER_ASSIGN(index_, index.Decode(std::string_view(data.bytes).substr(0, data.end),
                                     format_.order, fdx.origin()));
  return {};
}

Status StoredFields::CheckEnd() const {
  MUSTER_ASSIGN(const std::string rest, fdt_.Read(index_.end, fdt_.length() - index_.end));
  const std::string_view tail = rest;
  MUSTER_ASSIGN(const uint32_t expected,
                FooterCrc(tail.substr(tail.size() - kFooterBytes), fdt_.origin()));
  if (Crc32(crc_, tail.substr(0, tail.size() - 8)) != expected) {
    return Error{Code::kCorrupt, fdt_.origin() + ": its CRC-32 is wrong",
                 "the file was damaged after it was written: take another snapshot"};
  }
  return {};
}

Result<std::string_view> StoredFields::BytesOf(size_t chunk) {
  const uint64_t start = index_.positions[chunk];
  const uint64_t length = index_.EndOf(chunk) - start;
  if (length > kMaxChunkBytes) {
    return Error{Code::kCorrupt,
                 fdt_.origin() + ": a chunk of " + std::to_string(length) + " bytes"};
  }
  const bool in_order = chunk == next_chunk_;
  next_chunk_ = chunk + 1;
  if (start < window_start_ || start + length > window_start_ + window_.size()) {
    ahead_ = in_order ? std::min(std::max(ahead_ * 2, kFirstWindow), fdt_.read_ahead()) : 0;
    uint64_t end = start + length;
    for (size_t next = chunk + 1; next < chunks() && index_.EndOf(next) - start <= ahead_; ++next) {
      end = index_.EndOf(next);
    }
    // Invalid until completely read.
    window_start_ = UINT64_MAX;
    if (window_.capacity() > kMostKept + fdt_.read_ahead()) window_ = std::string();
    MUSTER_TRY(fdt_.ReadInto(start, end - start, window_));
    window_start_ = start;
  }
  return std::string_view(window_).substr(start - window_start_, length);
}

Status StoredFields::ReadChunk(size_t chunk, Chunk& into) {
  MUSTER_ASSIGN(const std::string_view bytes, BytesOf(chunk));
  if (has_footer_ && chunk == crc_chunks_) {
    crc_ = Crc32(crc_, bytes);
    ++crc_chunks_;
    if (crc_chunks_ == chunks()) MUSTER_TRY(CheckEnd());
  }
  const uint64_t first = index_.first_docs[chunk];
  const uint64_t after = chunk + 1 < chunks() ? index_.first_docs[chunk + 1] : max_doc_;
  return into.Decode(bytes, format_, first, after - first, fdt_.origin(), index_.positions[chunk]);
}

}  // namespace muster::lucene
