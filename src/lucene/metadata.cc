#include "lucene/metadata.h"

#include <string>

#include "lucene/codec.h"
#include "lucene/inflate.h"
#include "lucene/lzf.h"
#include "lucene/smile.h"

namespace muster::lucene {
namespace {

using std::string_view_literals::operator""sv;

Result<std::string_view> OpenEnvelope(std::string_view blob, std::string_view codec,
                                      std::string_view origin) {
  // Elasticsearch 1 had none.
  if (!blob.starts_with("\x3F\xD7\x6C\x17")) return blob;
  MUSTER_ASSIGN(std::string_view content, CheckFooter(blob, origin));
  ByteReader reader(content, origin);
  const CodecHeader header = ReadHeader(reader);
  if (header.codec != codec || header.version != 1) {
    reader.Fail("it holds '" + header.codec + "' version " + std::to_string(header.version) +
                    " where '" + std::string(codec) + "' version 1 should be",
                Code::kIncompatible);
  }
  MUSTER_TRY(reader.status());
  return content.substr(reader.offset());
}

// What stands for the packing comes off; nothing says that it is not packed.
Result<std::string> Unpack(std::string_view content) {
  constexpr std::string_view kDeflate = "DFL\0"sv;
  constexpr std::string_view kZstd = "ZSTD\0"sv;
  if (content.starts_with(kDeflate)) {
    return InflateAll(content.substr(kDeflate.size()), kMaxMetadataBytes);
  }
  if (content.starts_with(kZstd)) {
    return DecodeZstdAll(content.substr(kZstd.size()), kMaxMetadataBytes);
  }
  if (content.starts_with("ZV")) return DecodeLzf(content, kMaxMetadataBytes);
  return std::string(content);
}

}  // namespace

Result<Json> ParseMetadata(std::string_view blob, std::string_view codec, std::string_view origin) {
  MUSTER_ASSIGN(const std::string_view content, OpenEnvelope(blob, codec, origin));
  auto unpacked = Unpack(content);
  if (!unpacked) return unpacked.error().Within(origin);
  const std::string& text = *unpacked;
  if (text.starts_with(":)\n")) return ParseSmile(text, origin);
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && text[start] == '{') {
    auto json = ParseJson(text, origin, {.bytes = kMaxMetadataBytes});
    if (!json) return Error{Code::kCorrupt, json.error().message};
    return json;
  }
  return Error{Code::kIncompatible,
               std::string(origin) + ": metadata that is neither JSON nor SMILE"};
}

}  // namespace muster::lucene
