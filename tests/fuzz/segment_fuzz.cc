// A whole shard: commit, segments, fields, deletions and documents, from the files of a bundle.

#include "bundle.h"
#include "lucene/segment_files.h"
#include "lucene/shard_reader.h"

namespace muster::fuzz {
namespace {

using lucene::Blobs;

class BundleBlobs : public Blobs {
 public:
  explicit BundleBlobs(const Bundle& bundle) : bundle_(bundle) {}

  const std::string& name() const override { return name_; }
  uint64_t read_ahead() const override { return 4096; }
  Result<std::vector<std::string>> ListRoot() const override { return std::vector<std::string>{}; }
  Result<uint64_t> Size(const std::string& path) const override { return bundle_.at(path).size(); }
  Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                  std::string& into) const override {
    into = bundle_.at(path).substr(offset, length);
    return {};
  }

 private:
  const Bundle& bundle_;
  const std::string name_ = "bundle";
};

// Also for files inside compound files.
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

void ReadAll(const Bundle& bundle) {
  Json files = Json::array();
  for (const auto& [name, content] : bundle) {
    files.push_back(Json{{"name", name}, {"physical_name", name}, {"length", content.size()}});
  }
  const BundleBlobs blobs(bundle);
  const auto directory =
      lucene::ShardDirectory::Parse(Json{{"files", files}}, blobs, "", "index[0]");
  if (!directory) return;
  auto reader = lucene::ShardReader::Open(*directory);
  if (!reader) return;
  lucene::Document document;
  while (true) {
    const auto found = reader->Next(document);
    if (!found || !*found) return;
  }
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::fuzz::Bundle bundle = muster::fuzz::Unbundle({reinterpret_cast<const char*>(data), size});
  muster::fuzz::FixCrcs(bundle);
  muster::fuzz::ReadAll(bundle);
  return 0;
}
