#include "pipeline/file/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/file.h"

namespace muster::pipeline {
namespace {

constexpr size_t kPackedBytes = size_t{256} << 10;

class PlainStream final : public ByteStream {
 public:
  static Result<std::unique_ptr<PlainStream>> Open(const std::string& path, uint64_t offset) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      return FileError("open", path, errno);
    }
    auto stream = std::unique_ptr<PlainStream>(new PlainStream(path, fd, offset));
    posix_fadvise(fd, static_cast<off_t>(offset), 0, POSIX_FADV_SEQUENTIAL);
    return stream;
  }
  ~PlainStream() override { close(fd_); }

  Result<size_t> Read(char* to, size_t size) override {
    for (;;) {
      const ssize_t got = pread(fd_, to, size, static_cast<off_t>(offset_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Error{Code::kUnavailable, "cannot read " + path_ + " at byte " +
                                             std::to_string(offset_) + ": " + std::strerror(errno)};
      }
      offset_ += static_cast<uint64_t>(got);
      return static_cast<size_t>(got);
    }
  }

  uint64_t offset() const { return offset_; }
  const std::string& path() const { return path_; }

 private:
  PlainStream(std::string path, int fd, uint64_t offset)
      : path_(std::move(path)), fd_(fd), offset_(offset) {}

  const std::string path_;
  const int fd_;
  uint64_t offset_;
};

// Shared by the decompressors: compressed input, and an offset to report when it is corrupt.
class Unpacker : public ByteStream {
 public:
  explicit Unpacker(std::unique_ptr<PlainStream> packed)
      : packed_(std::move(packed)), buffer_(kPackedBytes) {}

 protected:
  // Refills the input buffer; empty means end of file.
  Result<std::string_view> NextPacked() {
    MUSTER_ASSIGN(const size_t got, packed_->Read(buffer_.data(), buffer_.size()));
    return std::string_view(buffer_.data(), got);
  }

  Error Damaged(std::string_view what, size_t unused) const {
    return {Code::kCorrupt,
            packed_->path() + ": " + std::string(what) + " at byte " +
                std::to_string(packed_->offset() - unused),
            "get the file again; everything before that byte was read"};
  }

 private:
  const std::unique_ptr<PlainStream> packed_;
  std::vector<char> buffer_;
};

class GzipStream final : public Unpacker {
 public:
  explicit GzipStream(std::unique_ptr<PlainStream> packed) : Unpacker(std::move(packed)) {}
  ~GzipStream() override {
    if (ready_) inflateEnd(&stream_);
  }

  Result<size_t> Read(char* to, size_t size) override {
    if (!ready_) {
      if (inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) {
        return Error{Code::kUnavailable, "out of memory for unpacking gzip"};
      }
      ready_ = true;
    }
    // zlib's counters are 32-bit.
    const auto room = static_cast<uInt>(std::min<size_t>(size, size_t{1} << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) {
        MUSTER_ASSIGN(const std::string_view more, NextPacked());
        if (more.empty()) {
          if (between_members_) return size_t{0};
          return Damaged("the gzip data ends too early", 0);
        }
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(more.data()));
        stream_.avail_in = static_cast<uInt>(more.size());
      }
      if (between_members_) inflateReset(&stream_);
      const int state = inflate(&stream_, Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
        return Damaged("damaged gzip data", stream_.avail_in);
      }
      between_members_ = state == Z_STREAM_END;
    }
    return static_cast<size_t>(room - stream_.avail_out);
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
  // An empty file has no gzip member and is therefore not valid gzip.
  bool between_members_ = false;
};

class ZstdStream final : public Unpacker {
 public:
  explicit ZstdStream(std::unique_ptr<PlainStream> packed)
      : Unpacker(std::move(packed)), stream_(ZSTD_createDStream()) {}
  ~ZstdStream() override { ZSTD_freeDStream(stream_); }

  Result<size_t> Read(char* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        MUSTER_ASSIGN(const std::string_view more, NextPacked());
        if (more.empty()) {
          if (between_frames_) return size_t{0};
          return Damaged("the zstd data ends too early", 0);
        }
        in_ = {more.data(), more.size(), 0};
      }
      const size_t state = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(state) != 0) {
        return Damaged("damaged zstd data: " + std::string(ZSTD_getErrorName(state)),
                       in_.size - in_.pos);
      }
      between_frames_ = state == 0;
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* const stream_;
  ZSTD_inBuffer in_{};
  bool between_frames_ = false;
};

// Compressed data cannot be seeked, only read through.
Status Drop(ByteStream& stream, uint64_t bytes) {
  std::vector<char> buffer(kPackedBytes);
  while (bytes > 0) {
    const size_t piece = static_cast<size_t>(std::min<uint64_t>(bytes, buffer.size()));
    MUSTER_ASSIGN(const size_t got, stream.Read(buffer.data(), piece));
    if (got == 0) return {};
    bytes -= got;
  }
  return {};
}

}  // namespace

Compression CompressionOf(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::kGzip;
  if (path.ends_with(".zst")) return Compression::kZstd;
  return Compression::kNone;
}

Result<std::unique_ptr<ByteStream>> OpenByteStream(const std::string& path, Compression compression,
                                                   uint64_t offset) {
  const bool packed = compression != Compression::kNone;
  MUSTER_ASSIGN(auto file, PlainStream::Open(path, packed ? 0 : offset));
  if (!packed) return file;
  std::unique_ptr<ByteStream> unpacker;
  if (compression == Compression::kGzip) {
    unpacker = std::make_unique<GzipStream>(std::move(file));
  } else {
    unpacker = std::make_unique<ZstdStream>(std::move(file));
  }
  MUSTER_TRY(Drop(*unpacker, offset));
  return unpacker;
}

}  // namespace muster::pipeline
