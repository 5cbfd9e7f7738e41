#include "lucene/segment_files.h"

namespace muster::lucene {
namespace {

constexpr uint64_t kMaxSegmentInfoBytes = 16 * 1024 * 1024;

}  // namespace

Result<std::map<std::string, CompoundEntry>> ParseCompoundEntries(std::string_view file,
                                                                  std::string_view segment_id,
                                                                  std::string_view origin) {
  ByteReader start(file, origin);
  CodecHeader header = ReadHeader(start);
  const bool is_old = header.codec == "CompoundFileWriterEntries";
  if (start.ok() && !is_old && header.codec != "Lucene50CompoundEntries" &&
      header.codec != "Lucene90CompoundEntries") {
    start.Fail("compound file of kind '" + header.codec + "' is not understood",
               Code::kIncompatible);
  }
  MUSTER_TRY(start.status());
  std::string_view content = file;
  if (!is_old || header.version >= 1) {
    MUSTER_ASSIGN(content, CheckFooter(file, origin));
  }
  ByteReader reader(content, origin, is_old ? ByteOrder::kBig : OrderOf(header.codec));
  reader.SeekTo(start.offset());
  if (!is_old) {
    ReadIndexHeaderRest(reader, header);
    reader.Expect(header.id == segment_id, "it belongs to another segment");
  }
  std::map<std::string, CompoundEntry> entries;
  const size_t count = reader.Count(17);
  for (size_t i = 0; i < count && reader.ok(); ++i) {
    const std::string name(reader.String());
    CompoundEntry entry;
    entry.offset = reader.U64();
    entry.length = reader.U64();
    reader.Expect(entries.emplace(name, entry).second, "a file twice");
  }
  reader.Expect(reader.left() == 0, "more bytes than it has entries");
  MUSTER_TRY(reader.status());
  return entries;
}

Result<SegmentFiles> SegmentFiles::Open(const ShardDirectory& directory,
                                        const SegmentCommit& commit) {
  SegmentFiles files;
  files.directory_ = &directory;
  files.commit_ = commit;
  MUSTER_ASSIGN(const ShardFileView si, directory.Open(commit.name + ".si"));
  if (si.length() > kMaxSegmentInfoBytes) {
    return Error{Code::kIncompatible, si.origin() + ": too large to be a segment's description"};
  }
  MUSTER_ASSIGN(const std::string si_bytes, si.Read(0, si.length()));
  MUSTER_ASSIGN(files.info_, ParseSegmentInfo(si_bytes, commit.id, si.origin()));
  if (!files.info_.is_compound) return files;
  MUSTER_ASSIGN(const ShardFileView cfe, directory.Open(commit.name + ".cfe"));
  if (cfe.length() > kMaxSegmentInfoBytes) {
    return Error{Code::kIncompatible, cfe.origin() + ": too large to be a list of files"};
  }
  MUSTER_ASSIGN(const std::string cfe_bytes, cfe.Read(0, cfe.length()));
  MUSTER_ASSIGN(files.compound_, ParseCompoundEntries(cfe_bytes, commit.id, cfe.origin()));
  return files;
}

Result<ShardFileView> SegmentFiles::Find(const std::string& suffix) const {
  const std::string name = commit_.name + suffix;
  if (directory_->Has(name)) return directory_->Open(name);
  const auto inside = compound_.find(suffix);
  if (inside == compound_.end()) {
    return Error{Code::kCorrupt, origin() + ": the segment has no file " + name};
  }
  MUSTER_ASSIGN(const ShardFileView cfs, directory_->Open(commit_.name + ".cfs"));
  return cfs.Part(name, inside->second.offset, inside->second.length);
}

ByteReader OpenedFile::Reader(std::string_view origin) const {
  ByteReader reader(std::string_view(bytes).substr(0, end), origin, OrderOf(header.codec));
  reader.SeekTo(body);
  return reader;
}

Result<OpenedFile> OpenChecked(const ShardFileView& file, std::string_view segment_id) {
  OpenedFile opened;
  MUSTER_ASSIGN(opened.bytes, file.ReadChecked());
  opened.end = opened.bytes.size() - kFooterBytes;
  ByteReader reader(std::string_view(opened.bytes).substr(0, opened.end), file.origin());
  opened.header = ReadHeader(reader);
  ReadIndexHeaderRest(reader, opened.header);
  reader.Expect(opened.header.id == segment_id, "it belongs to another segment");
  MUSTER_TRY(reader.status());
  opened.body = reader.offset();
  return opened;
}

}  // namespace muster::lucene
