#include "lucene/metadata.h"

#include <charconv>
#include <string>

#include "core/yaml.h"
#include "lucene/cbor.h"
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

// Strips the compression marker; without one the content is not compressed.
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

// Elasticsearch quotes every string, so anything unquoted is a number or a constant.
Json FromYamlScalar(const YamlNode& node) {
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  int64_t number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, problem] = std::from_chars(node.text.data(), end, number);
  if (problem == std::errc() && stop == end) return number;
  return node.text;
}

Json FromYaml(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kScalar:
      return FromYamlScalar(node);
    case YamlNode::Kind::kSequence: {
      Json array = Json::array();
      for (const YamlNode& item : node.items) array.push_back(FromYaml(item));
      return array;
    }
    case YamlNode::Kind::kMap: {
      Json object = Json::object();
      for (const YamlEntry& entry : node.entries) object[entry.key.text] = FromYaml(entry.value);
      return object;
    }
  }
  return nullptr;
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
  if (LooksLikeCbor(text)) return ParseCbor(text, origin);
  if (text.starts_with("---")) {
    const auto yaml = ParseYaml(text, origin, {.bytes = kMaxMetadataBytes});
    if (!yaml) return Error{Code::kCorrupt, yaml.error().message};
    return FromYaml(yaml->root);
  }
  return Error{Code::kIncompatible,
               std::string(origin) + ": metadata that is neither JSON, SMILE, CBOR nor YAML"};
}

}  // namespace muster::lucene
