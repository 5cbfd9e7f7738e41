#include "lucene/file_window.h"

#include <algorithm>

namespace muster::lucene {

Error FileWindow::BeyondEnd() const {
  return Error{Code::kCorrupt, origin() + ": its numbers lie beyond its end"};
}

Result<FileWindow> FileWindow::Open(const ShardFileView& file, uint64_t offset, uint64_t length,
                                    uint64_t piece) {
  FileWindow window(file, offset, length, piece);
  if (offset > file.length() || length > file.length() - offset) return window.BeyondEnd();
  return window;
}

Result<std::string_view> FileWindow::At(uint64_t offset, uint64_t length) {
  if (offset > length_ || length > length_ - offset) return BeyondEnd();
  if (offset < start_ || offset - start_ > bytes_.size() ||
      length > bytes_.size() - (offset - start_)) {
    // One that fits into a piece is read whole.
    const uint64_t from = piece_ < length_ ? offset : 0;
    const uint64_t wanted = std::min(std::max(length, piece_), length_ - from);
    const Status read = file_.ReadInto(offset_ + from, wanted, bytes_);
    if (!read) {
      bytes_.clear();
      return read.error();
    }
    start_ = from;
  }
  return std::string_view(bytes_).substr(offset - start_, length);
}

Result<uint64_t> FileWindow::PackedNumber(uint64_t offset, uint32_t bits, uint64_t index,
                                          ByteOrder order) {
  if (bits == 0) return uint64_t{0};
  // Eight numbers take whole bytes, so the one that is wanted is among the next eight.
  const uint64_t group = index / 8;
  if (bits > 64 || group > length_ / bits || offset > length_) return BeyondEnd();
  MUSTER_ASSIGN(const std::string_view bytes,
                At(offset + group * bits, PackedBytes(index % 8 + 1, bits)));
  return PackedAt(bytes, bits, index % 8, order);
}

Result<uint64_t> FileWindow::MonotonicNumber(const DirectMonotonic& numbers, uint64_t index,
                                             ByteOrder order) {
  const auto place = numbers.PlaceOf(index);
  if (!place) return BeyondEnd();
  MUSTER_ASSIGN(const uint64_t delta,
                PackedNumber(place->offset, place->bits, place->index, order));
  return place->base + delta;
}

}  // namespace muster::lucene
