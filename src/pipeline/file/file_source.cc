#include "pipeline/file/file_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "core/descriptor.h"
#include "core/file.h"
#include "core/file_output.h"
#include "core/number.h"
#include "core/sha256.h"
#include "pipeline/flow/wrappers.h"

namespace muster::pipeline {
namespace {

constexpr uint64_t kMarkBytes = 4096;

Result<uint64_t> BytesParam(const Url& url, std::string_view name, uint64_t fallback) {
  const auto text = url.Param(name);
  if (!text) return fallback;
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (failed != std::errc() || end != text->data() + text->size() || value == 0) {
    return Error{Code::kInvalid,
                 url.scheme + ": parameter '" + std::string(name) + "' must be a number of bytes"};
  }
  return value;
}

Result<uint64_t> OffsetOf(const std::string& position, uint64_t when_empty) {
  if (position.empty()) return when_empty;
  uint64_t offset = 0;
  const char* const end = position.data() + position.size();
  const auto [stopped, failed] = std::from_chars(position.data(), end, offset);
  if (failed != std::errc() || stopped != end) {
    return Error{Code::kCorrupt, "'" + position + "' is not a position in a file"};
  }
  return offset;
}

}  // namespace

Result<FileSourceOptions> FileSourceOptions::From(const Url& url,
                                                  std::vector<std::string_view> endings) {
  FileSourceOptions options{.path = url.path, .endings = std::move(endings)};
  if (options.path.empty()) {
    return Error{Code::kInvalid, url.scheme + ": names no file or folder"};
  }
  MUSTER_ASSIGN(options.partition_bytes,
                BytesParam(url, "partition_bytes", options.partition_bytes));
  MUSTER_ASSIGN(options.max_document_bytes,
                BytesParam(url, "max_document_bytes", options.max_document_bytes));
  return options;
}

std::string FilePosition(uint64_t offset) {
  std::string text(16, '0');
  for (size_t i = text.size(); offset > 0 && i > 0; offset /= 10) {
    text[--i] = static_cast<char>('0' + offset % 10);
  }
  return text;
}

std::string FilePlace(const std::string& path, uint64_t line, uint64_t offset) {
  if (line == 0) return path + " at byte " + std::to_string(offset);
  return path + ":" + std::to_string(line) + " (byte " + std::to_string(offset) + ")";
}

namespace {

// kCorrupt: the file is shorter than when its partitions were made; the missing end would be lost
// silently.
Status CheckSize(const std::string& path, uint64_t expected) {
  MUSTER_ASSIGN(const FileEntry file, StatFile(path));
  if (file.size >= expected) return {};
  return Error{Code::kCorrupt,
               path + " has " + std::to_string(file.size) + " bytes, but had at least " +
                   std::to_string(expected),
               "if it was rewritten, migrate it again with a new run"};
}

// A fingerprint of the file's beginning and its length: "4096:0f3a…". It survives appends.
Result<std::string> MarkOf(const std::string& path, uint64_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("read", path, errno);
  const Descriptor file(fd);
  std::string head(std::min(bytes, kMarkBytes), '\0');
  const ssize_t got = pread(fd, head.data(), head.size(), 0);
  if (got < 0) return FileError("read", path, errno);
  head.resize(static_cast<size_t>(got));
  return std::to_string(head.size()) + ":" + Sha256Hex(head).substr(0, 32);
}

Status CheckMark(const std::string& path, const std::string& mark) {
  if (mark.empty()) return {};
  const auto bytes = ParseNumber<uint64_t>(std::string_view(mark).substr(0, mark.find(':')));
  MUSTER_ASSIGN(const std::string now, MarkOf(path, bytes.value_or(0)));
  if (now == mark) return {};
  return Error{Code::kCorrupt, path + " is not the same file any more: its beginning differs",
               "if it was replaced, migrate it again with a new run"};
}

// Reads a partition of a file that must not shrink during the read.
class WholeReader final : public ReaderWrapper {
 public:
  WholeReader(std::unique_ptr<Reader> reader, std::string path, uint64_t expected)
      : ReaderWrapper(std::move(reader)), path_(std::move(path)), expected_(expected) {}

  Result<std::optional<Document>> Next() override {
    auto document = ReaderWrapper::Next();
    if (document && !*document) MUSTER_TRY(CheckSize(path_, expected_));
    return document;
  }

 private:
  const std::string path_;
  const uint64_t expected_;
};

}  // namespace

Result<std::vector<Collection>> FileSource::Collections() {
  MUSTER_ASSIGN(const auto found, ListFiles(options_.path, options_.endings));
  std::vector<Collection> all;
  for (const FileCollection& one : found) {
    MUSTER_ASSIGN(std::string metadata, Metadata(one));
    all.push_back({one.name, std::move(metadata)});
  }
  return all;
}

Result<std::optional<std::string>> FileSource::TargetOf(const std::string& collection) {
  MUSTER_ASSIGN(const auto all, ListFiles(options_.path, options_.endings));
  std::error_code failed;
  if (!std::filesystem::is_directory(options_.path, failed)) return all.front().name;
  const auto is_there = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(),
                       [&](const FileCollection& one) { return one.name == name; });
  };
  const std::string folder = SafeFileName(collection);
  if (is_there(folder)) return folder;
  // Files that no sink wrote have the collection's own name. One that could be an encoded name is
  // another collection's.
  const bool could_be_encoded = std::all_of(
      collection.begin(), collection.end(),
      [](const char& c) { return c == '%' || PercentEncode(std::string_view(&c, 1)).size() == 1; });
  if (!could_be_encoded && is_there(collection)) return collection;
  return std::optional<std::string>();
}

Result<FileCollection> FileSource::Find(const std::string& collection) {
  MUSTER_ASSIGN(auto all, ListFiles(options_.path, options_.endings));
  for (FileCollection& one : all) {
    if (one.name == collection) return std::move(one);
  }
  return Error{Code::kNotFound, options_.path + " has no collection '" + collection + "'"};
}

Result<std::vector<Partition>> FileSource::Partitions(const std::string& collection) {
  MUSTER_ASSIGN(const FileCollection found, Find(collection));
  std::vector<Partition> partitions;
  for (const FileEntry& file : found.files) {
    MUSTER_ASSIGN(const std::string mark, MarkOf(file.path, file.size));
    std::vector<uint64_t> cuts = {0};
    if (file.compression == Compression::kNone && file.size > options_.partition_bytes) {
      MUSTER_ASSIGN(cuts, Cuts(file, options_.partition_bytes));
    }
    for (size_t i = 0; i < cuts.size(); ++i) {
      const bool is_last = i + 1 == cuts.size();
      const uint64_t end = is_last ? file.size : cuts[i + 1];
      partitions.push_back({.collection = collection,
                            .shard = static_cast<int>(partitions.size()),
                            .part = file.path,
                            .begin = i == 0 ? "" : FilePosition(cuts[i]),
                            .end = is_last ? "" : FilePosition(end),
                            .bytes = static_cast<int64_t>(end - cuts[i]),
                            .mark = mark});
    }
  }
  return partitions;
}

Result<std::unique_ptr<Reader>> FileSource::Read(const Partition& partition,
                                                 const std::string& position, std::stop_token) {
  MUSTER_ASSIGN(const FileEntry file, StatFile(partition.part));
  FileRange range;
  MUSTER_ASSIGN(range.begin, OffsetOf(position.empty() ? partition.begin : position, 0));
  MUSTER_ASSIGN(range.end, OffsetOf(partition.end, UINT64_MAX));
  // For a compressed file, its bytes on disk.
  MUSTER_ASSIGN(const uint64_t begin, OffsetOf(partition.begin, 0));
  uint64_t expected =
      begin + static_cast<uint64_t>(std::max<int64_t>(0, partition.bytes.value_or(0)));
  if (file.compression == Compression::kNone) {
    expected = std::max(partition.end.empty() ? expected : range.end, range.begin);
  }
  MUSTER_TRY(CheckSize(partition.part, expected));
  MUSTER_TRY(CheckMark(partition.part, partition.mark));
  MUSTER_ASSIGN(auto reader, ReadRange(file, range));
  return std::make_unique<WholeReader>(std::move(reader), partition.part, expected);
}

std::optional<double> FileSource::FractionBefore(const Partition& partition,
                                                 const std::string& position) {
  if (position.empty()) return 0.0;
  const auto file = StatFile(partition.part);
  // A compressed file's content size is known only at its end.
  if (!file || file->compression != Compression::kNone) return std::nullopt;
  const auto begin = OffsetOf(partition.begin, 0);
  const auto end = OffsetOf(partition.end, file->size);
  const auto at = OffsetOf(position, 0);
  if (!begin || !end || !at) return std::nullopt;
  if (*end <= *begin || *at >= *end) return 1.0;
  if (*at <= *begin) return 0.0;
  return static_cast<double>(*at - *begin) / static_cast<double>(*end - *begin);
}

}  // namespace muster::pipeline
