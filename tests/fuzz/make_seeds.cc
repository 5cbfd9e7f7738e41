// make_seeds REPOSITORY FOLDER: what a real server wrote, as seeds of each target, in
// FOLDER/TARGET.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "bundle.h"
#include "lucene/chunk.h"
#include "lucene/codec.h"
#include "lucene/repository.h"

namespace muster::fuzz {
namespace {

namespace fs = std::filesystem;

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) {}

  void Add(const std::string& target, std::string_view bytes) {
    fs::create_directories(folder_ / target);
    const auto name = std::to_string(lucene::Crc32(0, bytes)) + "-" + std::to_string(bytes.size());
    std::ofstream(folder_ / target / name, std::ios::binary) << bytes;
  }

 private:
  const fs::path folder_;
};

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void AddMetadata(const fs::path& repository, Seeds& seeds) {
  for (const auto& entry : fs::recursive_directory_iterator(repository)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || (entry.path().extension() != ".dat" && name != "index-0")) {
      continue;
    }
    const std::string blob = Content(entry.path());
    seeds.Add("metadata", blob);
    const size_t smile = blob.find(":)\n");
    if (smile < 64 && blob.size() > smile + lucene::kFooterBytes) {
      seeds.Add("smile", blob.substr(smile, blob.size() - smile - lucene::kFooterBytes));
    }
  }
}

// Of a segment with one chunk: that chunk, as Lucene 9 packs it.
void AddChunk(std::string_view fdt, Seeds& seeds) {
  lucene::ByteReader reader(fdt, "fdt", lucene::ByteOrder::kLittle);
  lucene::CodecHeader header = lucene::ReadHeader(reader);
  lucene::ReadIndexHeaderRest(reader, header);
  const size_t start = reader.offset();
  reader.VInt();
  const uint32_t documents = reader.VInt() >> 2;
  if (!reader.ok() || documents > 255 || fdt.size() < start + lucene::kFooterBytes) return;
  const bool is_high = header.codec == "Lucene90StoredFieldsHighData";
  const auto packing =
      is_high ? lucene::Packing::kDeflateDictionary : lucene::Packing::kLz4Dictionary;
  std::string seed = {static_cast<char>(packing), '\xE5', '\0', static_cast<char>(documents)};
  seed += fdt.substr(start, fdt.size() - start - lucene::kFooterBytes);
  seeds.Add("stored_fields", seed);
}

Status AddShard(const lucene::ShardDirectory& directory, Seeds& seeds) {
  Bundle bundle;
  for (const auto& [name, file] : directory.files()) {
    MUSTER_ASSIGN(bundle[name], directory.Read(file, 0, file.length));
    const size_t fdt = bundle[name].find("Lucene90StoredFields");
    if (name.ends_with(".fdt")) AddChunk(bundle[name], seeds);
    // In a compound file the next one begins where the footer of this one ends.
    if (name.ends_with(".cfs") && fdt != std::string::npos && fdt > 5) {
      const std::string_view rest = std::string_view(bundle[name]).substr(fdt - 5);
      const size_t footer = rest.find("\xC0\x28\x93\xE8");
      if (footer != rest.npos) AddChunk(rest.substr(0, footer + lucene::kFooterBytes), seeds);
    }
  }
  seeds.Add("segment", ToBytes(bundle));
  return {};
}

Status AddShards(const std::string& folder, Seeds& seeds) {
  MUSTER_ASSIGN(auto blobs, lucene::OpenFolder(folder));
  MUSTER_ASSIGN(const auto repository, lucene::Repository::Open(std::move(blobs)));
  for (const std::string& name : repository.SnapshotNames()) {
    MUSTER_ASSIGN(const lucene::Snapshot snapshot, repository.ReadSnapshot(name));
    for (const std::string& index_name : snapshot.indices) {
      MUSTER_ASSIGN(const auto index, repository.ReadIndex(snapshot, index_name));
      for (int shard = 0; shard < index.shards; ++shard) {
        MUSTER_ASSIGN(const auto directory, repository.ReadShard(snapshot, index, shard));
        MUSTER_TRY(AddShard(directory, seeds));
      }
    }
  }
  return {};
}

}  // namespace
}  // namespace muster::fuzz

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  muster::fuzz::Seeds seeds(argv[2]);
  muster::fuzz::AddMetadata(argv[1], seeds);
  const auto added = muster::fuzz::AddShards(argv[1], seeds);
  if (!added) std::cerr << "make_seeds: " << added.error().ToString() << "\n";
  return added ? 0 : 1;
}
