#include "pipeline/file/packed_output.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/descriptor.h"
#include "core/file.h"

namespace muster::pipeline {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

class GzipOutput final : public FileOutput {
 public:
  explicit GzipOutput(std::unique_ptr<FileOutput> file)
      : file_(std::move(file)), packed_(size_t{64} << 10) {}
  ~GzipOutput() override {
    if (open_) deflateEnd(&stream_);
  }

  Status Append(std::string_view bytes) override {
    if (bytes.empty()) return {};
    MUSTER_TRY(Begin());
    while (!bytes.empty()) {
      // zlib's counters are 32-bit.
      const std::string_view piece = bytes.substr(0, size_t{1} << 30);
      bytes.remove_prefix(piece.size());
      MUSTER_TRY(Pack(piece, Z_NO_FLUSH));
    }
    return {};
  }

  Result<uint64_t> Flush() override {
    // Even an empty gzip file needs one member.
    if (!begun_) MUSTER_TRY(Begin());
    if (open_) {
      MUSTER_TRY(Pack({}, Z_FINISH));
      deflateEnd(&stream_);
      open_ = false;
    }
    return file_->Flush();
  }

 private:
  Status Begin() {
    if (open_) return {};
    stream_ = {};
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      return Error{Code::kUnavailable, "out of memory for packing gzip"};
    }
    open_ = begun_ = true;
    return {};
  }

  Status Pack(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      deflate(&stream_, flush);
      MUSTER_TRY(file_->Append({packed_.data(), packed_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0);
    return {};
  }

  const std::unique_ptr<FileOutput> file_;
  std::vector<char> packed_;
  z_stream stream_{};
  bool open_ = false;   // a member has begun
  bool begun_ = false;  // any member was written
};

class ZstdOutput final : public FileOutput {
 public:
  explicit ZstdOutput(std::unique_ptr<FileOutput> file)
      : file_(std::move(file)), packed_(ZSTD_CStreamOutSize()), stream_(ZSTD_createCCtx()) {}
  ~ZstdOutput() override { ZSTD_freeCCtx(stream_); }

  Status Append(std::string_view bytes) override {
    open_ = open_ || !bytes.empty();
    return Pack(bytes, ZSTD_e_continue);
  }

  Result<uint64_t> Flush() override {
    if (open_ || !begun_) MUSTER_TRY(Pack({}, ZSTD_e_end));
    open_ = false;
    begun_ = true;
    return file_->Flush();
  }

 private:
  Status Pack(std::string_view bytes, ZSTD_EndDirective mode) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{packed_.data(), packed_.size(), 0};
      const size_t left = ZSTD_compressStream2(stream_, &out, &in, mode);
      if (ZSTD_isError(left) != 0) {
        return Error{Code::kInternal, std::string("zstd: ") + ZSTD_getErrorName(left)};
      }
      MUSTER_TRY(file_->Append({packed_.data(), out.pos}));
      if (mode == ZSTD_e_end ? left == 0 : in.pos == in.size) return {};
    }
  }

  const std::unique_ptr<FileOutput> file_;
  std::vector<char> packed_;
  ZSTD_CCtx* const stream_;
  bool open_ = false;   // a frame has begun
  bool begun_ = false;  // any frame was written
};

}  // namespace

Result<std::unique_ptr<FileOutput>> CreatePackedOutput(const std::string& path,
                                                       Compression compression) {
  MUSTER_ASSIGN(std::unique_ptr<FileOutput> plain, CreateFileOutput(path));
  switch (compression) {
    case Compression::kGzip:
      return std::make_unique<GzipOutput>(std::move(plain));
    case Compression::kZstd:
      return std::make_unique<ZstdOutput>(std::move(plain));
    case Compression::kNone:
      break;
  }
  return plain;
}

Status JoinFiles(const std::vector<FilePiece>& pieces, const std::string& path) {
  const Descriptor out(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (out.get() < 0) return FileError("create", path, errno);
  std::vector<char> buffer(kBufferBytes);
  for (const FilePiece& piece : pieces) {
    const Descriptor in(open(piece.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (in.get() < 0) return FileError("read", piece.path, errno);
    for (uint64_t left = piece.bytes; left > 0;) {
      const auto want = static_cast<size_t>(std::min<uint64_t>(left, buffer.size()));
      const ssize_t got = read(in.get(), buffer.data(), want);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("read", piece.path, errno);
      if (got == 0) {
        return Error{Code::kCorrupt, piece.path + " is shorter than what was written to it"};
      }
      MUSTER_TRY(WriteAll(out.get(), {buffer.data(), static_cast<size_t>(got)}, path));
      left -= static_cast<uint64_t>(got);
    }
  }
  if (fdatasync(out.get()) != 0) return FileError("sync", path, errno);
  return {};
}

}  // namespace muster::pipeline
