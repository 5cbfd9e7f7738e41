#include "lucene/live_docs.h"

#include "lucene/soft_deletes.h"

namespace muster::lucene {
namespace {

constexpr uint64_t kMaxBytes = 512 * 1024 * 1024;

void ReadWords(ByteReader& reader, DocSet& live) {
  for (uint32_t doc = 0; doc < live.size() && reader.ok(); doc += 64) {
    const uint64_t word = reader.U64();
    const uint32_t in_word = std::min<uint32_t>(64, live.size() - doc);
    for (uint32_t bit = 0; bit < in_word; ++bit) {
      if ((word >> bit & 1) != 0) live.Add(doc + bit);
    }
    reader.Expect(in_word == 64 || word >> in_word == 0, "documents beyond the last one");
  }
}

// A byte of `.del`. Bits mean "live" since version 1, "deleted" before.
void SetByte(ByteReader& reader, DocSet& live, uint64_t index, uint8_t byte, bool means_live) {
  for (uint64_t bit = 0; bit < 8; ++bit) {
    const uint64_t doc = index * 8 + bit;
    if (doc >= live.size()) break;
    if (((byte >> bit & 1) != 0) == means_live) {
      live.Add(static_cast<uint32_t>(doc));
    } else {
      live.Remove(static_cast<uint32_t>(doc));
    }
  }
  reader.Expect(index * 8 < live.size(), "documents beyond the last one");
}

Result<DocSet> ParseDel(std::string_view file, uint32_t max_doc, std::string_view origin) {
  ByteReader start(file, origin);
  start.Expect(start.I32() == -2, "deletions of Lucene 3");
  const CodecHeader header = ReadHeader(start);
  if (start.ok() && (header.codec != "BitVector" || header.version > 2)) {
    start.Fail("deletions of kind '" + header.codec + "' version " +
                   std::to_string(header.version) + " are not understood",
               Code::kIncompatible);
  }
  MUSTER_TRY(start.status());
  std::string_view content = file;
  if (header.version >= 2) {
    MUSTER_ASSIGN(content, CheckFooter(file, origin));
  }
  ByteReader reader(content, origin);
  reader.SeekTo(start.offset());
  const bool means_live = header.version >= 1;
  int32_t size = reader.I32();
  const bool has_gaps = size == -1;
  if (has_gaps) size = reader.I32();
  reader.I32();
  reader.Expect(size >= 0 && static_cast<uint32_t>(size) == max_doc,
                "deletions of another number of documents");
  MUSTER_TRY(reader.status());
  DocSet live(max_doc, /*full=*/true);
  if (!has_gaps) {
    for (uint64_t i = 0; i < (max_doc + 7ULL) / 8; ++i) {
      SetByte(reader, live, i, reader.U8(), means_live);
    }
  } else {
    uint64_t index = 0;
    while (reader.left() > 0) {
      index += reader.VInt();
      const uint8_t byte = reader.U8();
      if (reader.ok()) SetByte(reader, live, index, byte, means_live);
    }
  }
  reader.Expect(reader.left() == 0, "more bytes than it has documents");
  MUSTER_TRY(reader.status());
  return live;
}

}  // namespace

Result<DocSet> ParseLiveDocs(std::string_view file, std::string_view segment_id, uint32_t max_doc,
                             std::string_view origin) {
  if (file.starts_with("\xFF\xFF\xFF\xFE")) return ParseDel(file, max_doc, origin);
  ByteReader start(file, origin);
  CodecHeader header = ReadHeader(start);
  if (start.ok() && ((header.codec != "Lucene50LiveDocs" && header.codec != "Lucene90LiveDocs") ||
                     header.version != 0)) {
    start.Fail("live documents of kind '" + header.codec + "' version " +
                   std::to_string(header.version) + " are not understood",
               Code::kIncompatible);
  }
  MUSTER_TRY(start.status());
  MUSTER_ASSIGN(const std::string_view content, CheckFooter(file, origin));
  ByteReader reader(content, origin, OrderOf(header.codec));
  reader.SeekTo(start.offset());
  ReadIndexHeaderRest(reader, header);
  reader.Expect(header.id == segment_id, "it belongs to another segment");
  reader.Expect(reader.left() == (max_doc + 63ULL) / 64 * 8, "another number of documents");
  MUSTER_TRY(reader.status());
  DocSet live(max_doc);
  ReadWords(reader, live);
  MUSTER_TRY(reader.status());
  return live;
}

Result<std::optional<DocSet>> ReadLiveDocs(const SegmentFiles& files,
                                           const std::vector<FieldInfo>& fields) {
  const SegmentCommit& commit = files.commit();
  const auto max_doc = static_cast<uint32_t>(files.info().max_doc);
  std::optional<DocSet> live;
  if (commit.delete_gen >= 0) {
    const std::string stem = "_" + ToBase36(static_cast<uint64_t>(commit.delete_gen));
    auto file = files.Find(stem + ".liv");
    if (!file && commit.id.empty()) file = files.Find(stem + ".del");
    MUSTER_TRY(file);
    if (file->length() > kMaxBytes) {
      return Error{Code::kIncompatible, file->origin() + ": too large to be live documents"};
    }
    MUSTER_ASSIGN(const std::string bytes, file->Read(0, file->length()));
    MUSTER_ASSIGN(live, ParseLiveDocs(bytes, commit.id, max_doc, file->origin()));
    if (max_doc - live->Count() != static_cast<uint64_t>(commit.delete_count)) {
      return Error{Code::kCorrupt, file->origin() + ": " + std::to_string(max_doc - live->Count()) +
                                       " deleted documents where the commit says " +
                                       std::to_string(commit.delete_count)};
    }
  } else if (commit.delete_count != 0) {
    return Error{Code::kCorrupt, files.origin() + ": deletions are counted, but have no file"};
  }
  MUSTER_ASSIGN(const std::optional<DocSet> soft, ReadSoftDeletes(files, fields));
  const uint64_t before = live ? live->Count() : max_doc;
  if (soft) {
    if (!live) live = DocSet(max_doc, /*full=*/true);
    live->RemoveAll(*soft);
  }
  const uint64_t soft_deleted = before - (live ? live->Count() : max_doc);
  if (commit.soft_delete_count >= 0 &&
      soft_deleted != static_cast<uint64_t>(commit.soft_delete_count)) {
    return Error{Code::kCorrupt, files.origin() + ": " + std::to_string(soft_deleted) +
                                     " softly deleted documents where the commit says " +
                                     std::to_string(commit.soft_delete_count)};
  }
  return live;
}

}  // namespace muster::lucene
