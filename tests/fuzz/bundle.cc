#include "bundle.h"

#include <algorithm>
#include <cstring>

#include "lucene/codec.h"
#include "lucene/segment_files.h"

namespace muster::fuzz {
namespace {

std::string_view Take(std::string_view& bytes) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return {};
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  const std::string_view taken = bytes.substr(0, std::min<size_t>(length, bytes.size()));
  bytes.remove_prefix(taken.size());
  return taken;
}

void Put(std::string& bytes, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
}

}  // namespace

Bundle Unbundle(std::string_view bytes) {
  Bundle bundle;
  while (bytes.size() >= sizeof(uint32_t)) {
    const std::string name(Take(bytes));
    bundle[name] = Take(bytes);
  }
  return bundle;
}

std::string ToBytes(const Bundle& bundle) {
  std::string bytes;
  for (const auto& [name, content] : bundle) {
    Put(bytes, name);
    Put(bytes, content);
  }
  return bytes;
}

std::string WithRightCrc(std::string_view file) {
  constexpr size_t kCrcBytes = 8;
  std::string fixed(file);
  if (file.size() < lucene::kFooterBytes ||
      !lucene::FooterCrc(file.substr(file.size() - lucene::kFooterBytes), "")) {
    return fixed;
  }
  const uint32_t crc = lucene::Crc32(0, file.substr(0, file.size() - kCrcBytes));
  for (size_t i = 0; i < sizeof crc; ++i) {
    fixed[file.size() - 1 - i] = static_cast<char>(crc >> (8 * i));
  }
  return fixed;
}

Status BundleBlobs::ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                             std::string& into) const {
  into = bundle_.at(path).substr(offset, length);
  return {};
}

Result<lucene::ShardDirectory> OpenBundle(const Bundle& bundle, const BundleBlobs& blobs) {
  Json files = Json::array();
  for (const auto& [name, content] : bundle) {
    files.push_back(Json{{"name", name}, {"physical_name", name}, {"length", content.size()}});
  }
  return lucene::ShardDirectory::Parse(Json{{"files", files}}, blobs, "", "index[0]");
}

void FixCrcs(Bundle& bundle) {
  for (auto& [name, content] : bundle) content = WithRightCrc(content);
  for (auto& [name, content] : bundle) {
    if (!name.ends_with(".cfe")) continue;
    const auto data = bundle.find(name.substr(0, name.size() - 1) + "s");
    lucene::ByteReader reader(content, name);
    lucene::CodecHeader header = lucene::ReadHeader(reader);
    lucene::ReadIndexHeaderRest(reader, header);
    const auto entries = lucene::ParseCompoundEntries(content, header.id, name);
    if (data == bundle.end() || !entries) continue;
    std::string& bytes = data->second;
    for (const auto& [suffix, entry] : *entries) {
      if (entry.offset > bytes.size() || entry.length > bytes.size() - entry.offset) continue;
      const auto part = std::string_view(bytes).substr(entry.offset, entry.length);
      bytes.replace(entry.offset, entry.length, WithRightCrc(part));
    }
    bytes = WithRightCrc(bytes);
  }
}

}  // namespace muster::fuzz
