#include "lucene/inflate.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

namespace muster::lucene {
namespace {

Error Damaged(std::string_view what, std::string_view why) {
  return Error{Code::kCorrupt, "damaged " + std::string(what) + " data: " + std::string(why)};
}

class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, -15) == Z_OK; }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }

  bool Start(std::string_view in, std::string_view dictionary) {
    stream_.next_in = const_cast<Bytef*>(Bytes(in));
    stream_.avail_in = static_cast<uInt>(in.size());
    return ready_ && in.size() <= UINT32_MAX &&
           (dictionary.empty() ||
            inflateSetDictionary(&stream_, Bytes(dictionary),
                                 static_cast<uInt>(dictionary.size())) == Z_OK);
  }

  // Z_OK, Z_STREAM_END or the error; adds the output size to `written`.
  int Run(char* to, size_t room, size_t& written) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(room, UINT32_MAX));
    const size_t before = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    written += before - stream_.avail_out;
    return code;
  }

 private:
  static const Bytef* Bytes(std::string_view text) {
    return reinterpret_cast<const Bytef*>(text.data());
  }

  z_stream stream_ = {};
  bool ready_ = false;
};

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

constexpr size_t kGrowBytes = 64 * 1024;

}  // namespace

Status InflateRaw(std::string_view in, std::string_view dictionary, char* to, size_t size) {
  Inflater inflater;
  if (!inflater.Start(in, dictionary)) return Damaged("DEFLATE", "it cannot be started");
  size_t written = 0;
  int code = inflater.Run(to, size, written);
  if (code == Z_OK && written == size) {
    // All output is there, but the end of the stream was not seen yet.
    char surplus = 0;
    code = inflater.Run(&surplus, 1, written);
  }
  if (code != Z_STREAM_END || written != size) {
    return Damaged("DEFLATE", "it does not unpack to " + std::to_string(size) + " bytes");
  }
  return {};
}

Result<std::string> InflateAll(std::string_view in, size_t max_bytes) {
  Inflater inflater;
  if (!inflater.Start(in, {})) return Damaged("DEFLATE", "it cannot be started");
  std::string out;
  size_t written = 0;
  while (true) {
    if (written > max_bytes) return Damaged("DEFLATE", "it decompresses to more than the limit");
    out.resize(written + kGrowBytes);
    const int code = inflater.Run(out.data() + written, kGrowBytes, written);
    if (code == Z_STREAM_END) break;
    if (code != Z_OK) return Damaged("DEFLATE", "it is truncated or invalid");
  }
  out.resize(written);
  return out;
}

Status DecodeZstd(std::string_view in, std::string_view dictionary, char* to, size_t size) {
  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  // A prefix is raw content, whatever it starts with.
  if (context == nullptr ||
      ZSTD_isError(ZSTD_DCtx_refPrefix(context.get(), dictionary.data(), dictionary.size()))) {
    return Error{Code::kInternal, "zstd could not be started"};
  }
  const size_t written = ZSTD_decompressDCtx(context.get(), to, size, in.data(), in.size());
  if (ZSTD_isError(written)) return Damaged("zstd", ZSTD_getErrorName(written));
  if (written != size) {
    return Damaged("zstd", "it does not unpack to " + std::to_string(size) + " bytes");
  }
  return {};
}

Result<std::string> DecodeZstdAll(std::string_view in, size_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  if (context == nullptr) return Error{Code::kInternal, "zstd could not be started"};
  std::string out;
  ZSTD_inBuffer input{in.data(), in.size(), 0};
  size_t written = 0;
  size_t pending = 1;
  while (pending != 0 || input.pos < input.size) {
    if (written > max_bytes) return Damaged("zstd", "it decompresses to more than the limit");
    out.resize(written + kGrowBytes);
    ZSTD_outBuffer output{out.data() + written, kGrowBytes, 0};
    pending = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(pending)) return Damaged("zstd", ZSTD_getErrorName(pending));
    written += output.pos;
    if (pending != 0 && output.pos < kGrowBytes && input.pos == input.size) {
      return Damaged("zstd", "it ends too early");
    }
  }
  out.resize(written);
  return out;
}

}  // namespace muster::lucene
