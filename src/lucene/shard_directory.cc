#include "lucene/shard_directory.h"

#include <algorithm>

#include "lucene/base64.h"
#include "lucene/codec.h"

namespace muster::lucene {
namespace {

// Limit for files that are read whole: `.fnm`, `.fdx`, live documents. Anything larger is not one
// of them.
constexpr uint64_t kMaxWholeBytes = 512 * 1024 * 1024;
constexpr uint64_t kPieceBytes = 1024 * 1024;

Error BadList(const std::string& origin, const std::string& why) {
  return Error{Code::kCorrupt, origin + ": its list of files " + why};
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<uint64_t> NumberOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (!found->is_number_unsigned() && found->get<int64_t>() < 0) return std::nullopt;
  return found->get<uint64_t>();
}

// Before Lucene 4.8 files had no footer, and a different checksum.
bool HasFooter(const std::string& written_by) {
  return !written_by.starts_with("3.") &&
         !(written_by.starts_with("4.") && written_by.size() >= 3 && written_by[2] < '8' &&
           (written_by.size() == 3 || written_by[3] == '.'));
}

Result<std::string> ContentOf(const Json& object, const std::string& origin) {
  const auto hash = object.find("meta_hash");
  if (hash != object.end() && hash->is_binary()) {
    const auto& bytes = hash->get_binary();
    return std::string(bytes.begin(), bytes.end());
  }
  if (hash != object.end() && hash->is_string()) {
    if (auto bytes = DecodeBase64(hash->get<std::string>())) return *bytes;
  }
  return BadList(origin, "has a file without content");
}

Result<ShardFile> ParseFile(const Json& object, const std::string& origin) {
  if (!object.is_object()) return BadList(origin, "has an entry that is not an object");
  ShardFile file;
  file.name = TextOf(object, "physical_name");
  file.blob = TextOf(object, "name");
  const auto length = NumberOf(object, "length");
  if (!IsPlainName(file.name) || !IsPlainName(file.blob) || !length) {
    return BadList(origin, "has an entry without a name, blob or length");
  }
  file.length = *length;
  file.part_size = NumberOf(object, "part_size").value_or(file.length);
  if (file.part_size == 0 || file.part_size > file.length) file.part_size = file.length;
  const std::string written_by = TextOf(object, "written_by");
  const auto checksum = ParseBase36(TextOf(object, "checksum"));
  if (checksum && *checksum <= UINT32_MAX && !written_by.empty() && HasFooter(written_by)) {
    file.checksum = static_cast<uint32_t>(*checksum);
  }
  file.is_virtual = file.blob.starts_with("v__");
  if (file.is_virtual) {
    MUSTER_ASSIGN(file.content, ContentOf(object, origin));
    if (file.content.size() != file.length) {
      return BadList(origin, "has " + file.name + " with a length that differs from its content");
    }
  }
  return file;
}

}  // namespace

bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

Result<ShardDirectory> ShardDirectory::Parse(const Json& list, const Blobs& blobs,
                                             std::string folder, std::string origin) {
  ShardDirectory directory;
  directory.blobs_ = &blobs;
  directory.folder_ = std::move(folder);
  directory.origin_ = std::move(origin);
  const auto files = list.is_object() ? list.find("files") : list.end();
  if (files == list.end() || !files->is_array()) {
    return BadList(directory.origin_, "has no files");
  }
  for (const Json& object : *files) {
    MUSTER_ASSIGN(ShardFile file, ParseFile(object, directory.origin_));
    std::string name = file.name;
    if (!directory.files_.emplace(name, std::move(file)).second) {
      return BadList(directory.origin_, "has " + name + " twice");
    }
  }
  return directory;
}

Result<ShardFileView> ShardDirectory::Open(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return Error{Code::kCorrupt, origin_ + ": the snapshot has no file " + name};
  }
  return ShardFileView(this, &found->second, origin_ + " " + name);
}

Result<std::string> ShardDirectory::Read(const ShardFile& file, uint64_t offset,
                                         uint64_t length) const {
  std::string bytes;
  MUSTER_TRY(ReadInto(file, offset, length, bytes));
  return bytes;
}

Status ShardDirectory::ReadInto(const ShardFile& file, uint64_t offset, uint64_t length,
                                std::string& into) const {
  if (offset > file.length || length > file.length - offset) {
    return Error{Code::kCorrupt, origin_ + " " + file.name + ": the snapshot refers to byte " +
                                     std::to_string(offset) + ", beyond its end"};
  }
  if (file.is_virtual) {
    into.assign(file.content, offset, length);
    return {};
  }
  const std::string path = folder_ + file.blob;
  if (file.part_size == file.length) {
    const Status read = blobs_->ReadInto(path, offset, length, into);
    if (!read) return read.error().Within(origin_ + " " + file.name);
    return {};
  }
  into.clear();
  std::string piece;
  while (into.size() < length) {
    const uint64_t at = offset + into.size();
    const uint64_t in_part = at % file.part_size;
    const uint64_t piece_length = std::min(length - into.size(), file.part_size - in_part);
    const Status read = blobs_->ReadInto(path + ".part" + std::to_string(at / file.part_size),
                                         in_part, piece_length, piece);
    if (!read) return read.error().Within(origin_ + " " + file.name);
    into += piece;
  }
  return {};
}

Status ShardDirectory::Check(const ShardFile& file) const {
  const std::string name = origin_ + " " + file.name;
  if (!file.is_virtual && file.part_size == file.length) {
    MUSTER_ASSIGN(const uint64_t size, blobs_->Size(folder_ + file.blob));
    if (size != file.length) {
      return Error{Code::kCorrupt, name + ": has " + std::to_string(size) +
                                       " bytes where the snapshot says " +
                                       std::to_string(file.length)};
    }
  }
  uint32_t crc = 0;
  std::string footer;
  for (uint64_t at = 0; at < file.length; at += kPieceBytes) {
    MUSTER_ASSIGN(const std::string piece, Read(file, at, std::min(kPieceBytes, file.length - at)));
    const uint64_t covered = file.length < 8 ? 0 : file.length - 8;
    if (at < covered) {
      crc = Crc32(crc, std::string_view(piece).substr(0, std::min(covered - at, piece.size())));
    }
  }
  if (!file.checksum) return {};
  if (file.length < kFooterBytes) return Error{Code::kCorrupt, name + ": too short for a footer"};
  MUSTER_ASSIGN(footer, Read(file, file.length - kFooterBytes, kFooterBytes));
  MUSTER_ASSIGN(const uint32_t stored, FooterCrc(footer, name));
  if (stored != crc || stored != *file.checksum) {
    return Error{Code::kCorrupt, name + ": its CRC-32 is wrong",
                 "the file was damaged after it was written: take another snapshot"};
  }
  return {};
}

uint64_t ShardFileView::read_ahead() const { return directory_->read_ahead(); }

Result<std::string> ShardFileView::Read(uint64_t offset, uint64_t length) const {
  std::string bytes;
  MUSTER_TRY(ReadInto(offset, length, bytes));
  return bytes;
}

Status ShardFileView::ReadInto(uint64_t offset, uint64_t length, std::string& into) const {
  if (offset > length_ || length > length_ - offset) {
    return Error{Code::kCorrupt, origin_ + ": the snapshot refers to byte " +
                                     std::to_string(offset) + ", beyond its end"};
  }
  return directory_->ReadInto(*file_, start_ + offset, length, into);
}

Result<std::string> ShardFileView::ReadChecked() const {
  if (length_ > kMaxWholeBytes) {
    return Error{Code::kIncompatible, origin_ + ": too large to be read whole"};
  }
  MUSTER_ASSIGN(std::string bytes, Read(0, length_));
  MUSTER_TRY(CheckFooter(bytes, origin_));
  const bool whole = length_ == file_->length;
  if (whole && file_->checksum &&
      *FooterCrc(std::string_view(bytes).substr(bytes.size() - kFooterBytes), origin_) !=
          *file_->checksum) {
    return Error{Code::kCorrupt, origin_ + ": it is not the file that the snapshot lists"};
  }
  return bytes;
}

Result<ShardFileView> ShardFileView::Part(std::string_view name, uint64_t offset,
                                          uint64_t length) const {
  if (offset > length_ || length > length_ - offset) {
    return Error{Code::kCorrupt,
                 origin_ + ": the part " + std::string(name) + " lies beyond its end"};
  }
  ShardFileView part = *this;
  part.origin_ += "/" + std::string(name);
  part.start_ += offset;
  part.length_ = length;
  return part;
}

}  // namespace muster::lucene
