#include "lucene/doc_values.h"

#include <algorithm>

namespace muster::lucene {
namespace {

constexpr uint64_t kPiece = 64 * 1024;
// Terms are read in any order: those of a segment are kept packed in memory up to this size.
constexpr uint64_t kTermsInMemory = 64 * 1024 * 1024;
constexpr uint64_t kPieceOfTerms = 8 * 1024;
// Limits for one document and field, so that a damaged file cannot fill the memory.
constexpr uint64_t kMaxValues = 1'000'000;
constexpr uint64_t kMaxTextBytes = 256 * 1024 * 1024;
constexpr uint64_t kPieceToCheck = 1024 * 1024;
constexpr uint64_t kMaxHeader = 512;

// Values are not checked one by one, so the file's CRC is.
Status CheckData(const ShardFileView& file, std::string_view segment_id, std::string_view codec) {
  if (file.length() < kFooterBytes) {
    return Error{Code::kCorrupt, file.origin() + ": too short for a Lucene footer"};
  }
  uint32_t crc = 0;
  const uint64_t covered = file.length() - 8;
  std::string piece;
  for (uint64_t at = 0; at < covered; at += piece.size()) {
    MUSTER_TRY(file.ReadInto(at, std::min(kPieceToCheck, covered - at), piece));
    crc = Crc32(crc, piece);
  }
  MUSTER_TRY(file.ReadInto(file.length() - kFooterBytes, kFooterBytes, piece));
  MUSTER_ASSIGN(const uint32_t expected, FooterCrc(piece, file.origin()));
  if (crc != expected) {
    return Error{Code::kCorrupt, file.origin() + ": its CRC-32 is wrong",
                 "the file was damaged after it was written: take another snapshot"};
  }
  MUSTER_TRY(file.ReadInto(0, std::min(kMaxHeader, file.length()), piece));
  ByteReader reader(piece, file.origin());
  CodecHeader header = ReadHeader(reader);
  ReadIndexHeaderRest(reader, header);
  reader.Expect(header.id == segment_id, "it belongs to another segment");
  reader.Expect(header.codec == codec, "it is not what its description says");
  return reader.status();
}

}  // namespace

Result<int64_t> NumberColumn::At(uint64_t place) {
  // Unsigned, since it may overflow: the sum is the same.
  const auto factor = static_cast<uint64_t>(location_.factor);
  if (location_.block_shift >= 0) {
    MUSTER_TRY(SeekBlock(place >> location_.block_shift));
    const uint64_t in_block = place & ((1ULL << location_.block_shift) - 1);
    MUSTER_ASSIGN(const uint64_t number, window_.PackedNumber(start_, bits_, in_block, order_));
    return static_cast<int64_t>(factor * number + static_cast<uint64_t>(min_));
  }
  if (location_.bits == 0) return location_.min;
  MUSTER_ASSIGN(const uint64_t number, window_.PackedNumber(0, location_.bits, place, order_));
  if (location_.table.empty()) {
    return static_cast<int64_t>(factor * number + static_cast<uint64_t>(location_.min));
  }
  if (number < location_.table.size()) return location_.table[number];
  return Error{Code::kCorrupt, window_.origin() + ": a number that is not in its table"};
}

Status NumberColumn::SeekBlock(uint64_t block) {
  if (block_ && *block_ > block) block_.reset();
  if (!block_) next_ = 0;
  while (!block_ || *block_ < block) {
    MUSTER_ASSIGN(const std::string_view head, window_.At(next_, 9));
    ByteReader reader(head, window_.origin(), order_);
    bits_ = reader.U8();
    min_ = reader.I64();
    start_ = next_ + 9;
    next_ = start_;
    if (bits_ > 0) {
      MUSTER_ASSIGN(const std::string_view size, window_.At(start_, 4));
      ByteReader length(size, window_.origin(), order_);
      start_ += 4;
      next_ = start_ + length.U32();
    }
    block_ = block_ ? *block_ + 1 : 0;
  }
  return {};
}

Status DocValues::Read(uint32_t doc, std::vector<IndexedValue>& values) {
  MUSTER_ASSIGN(const std::optional<uint64_t> index, docs_.IndexOf(doc));
  if (!index) return {};
  uint64_t begin = *index;
  uint64_t end = begin + 1;
  if (addresses_) {
    FileWindow& window = addresses_->window;
    MUSTER_ASSIGN(begin, window.MonotonicNumber(addresses_->numbers, *index, order_));
    MUSTER_ASSIGN(end, window.MonotonicNumber(addresses_->numbers, *index + 1, order_));
    if (begin > end || end - begin > kMaxValues) {
      return Error{Code::kCorrupt, window.origin() + ": a document with impossibly many values"};
    }
  }
  uint64_t text_bytes = 0;
  for (uint64_t place = begin; place < end; ++place) {
    MUSTER_ASSIGN(const int64_t number, numbers_.At(place));
    if (!terms_) {
      values.emplace_back(number);
      continue;
    }
    MUSTER_ASSIGN(const std::string_view term, terms_->At(static_cast<uint64_t>(number)));
    text_bytes += term.size();
    if (text_bytes > kMaxTextBytes) {
      return Error{Code::kCorrupt, "a document with impossibly many values"};
    }
    values.emplace_back(std::string(term));
  }
  return {};
}

Result<std::unique_ptr<DocValues>> SegmentDocValues::Open(const FieldInfo& field) {
  if (field.doc_values_type == 0) return std::unique_ptr<DocValues>();
  MUSTER_ASSIGN(const File* const file, FileOf(DocValuesStem(field)));
  const auto entry = file->entries.find(field.number);
  if (entry == file->entries.end()) {
    return Error{Code::kCorrupt, file->data.origin() + ": no values for field " + field.name};
  }
  if (entry->second.kind == DocValuesKind::kBinary) {
    return Error{Code::kIncompatible,
                 file->data.origin() + ": binary doc values of field " + field.name};
  }
  auto opened = OpenEntry(*file, entry->second);
  if (!opened) return opened.error().Within("field " + field.name);
  return opened;
}

Result<const SegmentDocValues::File*> SegmentDocValues::FileOf(const std::string& stem) {
  const auto found = opened_.find(stem);
  if (found != opened_.end()) return &found->second;
  const std::string& id = files_.commit().id;
  MUSTER_ASSIGN(const ShardFileView dvm, files_.Find(stem + ".dvm"));
  MUSTER_ASSIGN(const OpenedFile meta, OpenChecked(dvm, id));
  const auto format = DocValuesFormatOf(meta.header.codec);
  if (!format || meta.header.version > kDocValuesVersion) {
    return Error{Code::kIncompatible, dvm.origin() + ": doc values of kind '" + meta.header.codec +
                                          "' version " + std::to_string(meta.header.version) +
                                          " are not understood"};
  }
  MUSTER_ASSIGN(auto entries, ParseDocValuesMeta(meta.Reader(dvm.origin()), *format,
                                                 meta.header.version, fields_));
  MUSTER_ASSIGN(ShardFileView data, files_.Find(stem + ".dvd"));
  MUSTER_TRY(CheckData(data, id, "Lucene" + std::to_string(*format) + "DocValuesData"));
  File file{OrderOf(meta.header.codec), std::move(entries), std::move(data)};
  return &opened_.emplace(stem, std::move(file)).first->second;
}

uint64_t SegmentDocValues::PieceOfTerms(const TermsLocation& terms) {
  if (terms.length > kTermsInMemory - terms_in_memory_) return kPieceOfTerms;
  terms_in_memory_ += terms.length;
  return terms.length;
}

Result<std::unique_ptr<DocValues>> SegmentDocValues::OpenEntry(const File& file,
                                                               const DocValuesEntry& entry) {
  const DocSetLocation& docs = entry.numbers.docs;
  std::optional<FileWindow> set;
  if (docs.offset < -2) {
    return Error{Code::kCorrupt,
                 file.data.origin() + ": a set of documents at an impossible place"};
  }
  if (docs.offset >= 0) {
    MUSTER_ASSIGN(
        set, FileWindow::Open(file.data, static_cast<uint64_t>(docs.offset), docs.length, kPiece));
  }
  const NumbersLocation& numbers = entry.numbers;
  MUSTER_ASSIGN(FileWindow column,
                FileWindow::Open(file.data, numbers.offset, numbers.length, kPiece));
  std::unique_ptr<DocValues> values(
      new DocValues(DocSetCursor(docs, std::move(set), file.order),
                    NumberColumn(numbers, std::move(column), file.order), file.order));
  if (const auto& addresses = entry.addresses) {
    MUSTER_ASSIGN(FileWindow window,
                  FileWindow::Open(file.data, addresses->offset, addresses->length, kPiece));
    values->addresses_.emplace(DocValues::Addresses{addresses->numbers, std::move(window)});
  }
  if (entry.kind == DocValuesKind::kSorted || entry.kind == DocValuesKind::kSortedSet) {
    const TermsLocation& terms = entry.terms;
    MUSTER_ASSIGN(FileWindow text,
                  FileWindow::Open(file.data, terms.offset, terms.length, PieceOfTerms(terms)));
    MUSTER_ASSIGN(FileWindow blocks,
                  FileWindow::Open(file.data, terms.blocks_offset, terms.blocks_length, kPiece));
    values->terms_.emplace(terms, std::move(text), std::move(blocks), file.order);
  }
  return values;
}

}  // namespace muster::lucene
