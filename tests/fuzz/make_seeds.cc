// make_seeds REPOSITORY FOLDER: writes the files of a real server as seeds for each target, to
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

using lucene::Packing;

// The format of chunks, by codec name.
struct ChunkKind {
  std::string_view codec;
  Packing packing;
  char format;       // in the encoding of stored_fields_fuzz.cc
  int token_flags;   // the same as in `format`
  int header_vints;  // between header and chunks
};

constexpr ChunkKind kChunkKinds[] = {
    {"Lucene41StoredFieldsData", Packing::kLz4, '\xE8', 0, 2},
    {"Lucene50StoredFieldsFastData", Packing::kLz4, '\xE2', 1, 2},
    {"Lucene50StoredFieldsHighData", Packing::kDeflate, '\xE2', 1, 2},
    {"Lucene87StoredFieldsFastData", Packing::kLz4Dictionary, '\xE4', 2, 0},
    {"Lucene87StoredFieldsHighData", Packing::kDeflateDictionary, '\xE4', 2, 0},
    {"Lucene90StoredFieldsFastData", Packing::kLz4Dictionary, '\xE5', 2, 0},
    {"Lucene90StoredFieldsHighData", Packing::kDeflateDictionary, '\xE5', 2, 0},
    {"ZstdStoredFields814", Packing::kZstd, '\xE5', 2, 0},
};

// The chunk of a segment with a single one.
void AddChunk(std::string_view fdt, const ChunkKind& kind, Seeds& seeds) {
  lucene::ByteReader reader(fdt, "fdt");
  lucene::CodecHeader header = lucene::ReadHeader(reader);
  if (!kind.codec.starts_with("Lucene41")) lucene::ReadIndexHeaderRest(reader, header);
  for (int i = 0; i < kind.header_vints; ++i) reader.VInt();
  const size_t start = reader.offset();
  reader.VInt();
  const uint32_t documents = reader.VInt() >> kind.token_flags;
  if (!reader.ok() || documents > 255 || fdt.size() < start + lucene::kFooterBytes) return;
  std::string seed = {static_cast<char>(kind.packing), kind.format, '\0',
                      static_cast<char>(documents)};
  seed += fdt.substr(start, fdt.size() - start - lucene::kFooterBytes);
  seeds.Add("stored_fields", seed);
}

// In a compound file the next file begins after the footer of this one.
void AddChunks(std::string_view file, Seeds& seeds) {
  constexpr size_t kBeforeName = 5;
  for (const ChunkKind& kind : kChunkKinds) {
    const size_t name = file.find(kind.codec);
    if (name == file.npos || name < kBeforeName) continue;
    const std::string_view fdt = file.substr(name - kBeforeName);
    const size_t footer = fdt.find("\xC0\x28\x93\xE8");
    if (footer != fdt.npos) AddChunk(fdt.substr(0, footer + lucene::kFooterBytes), kind, seeds);
  }
}

Status AddShard(const lucene::ShardDirectory& directory, Seeds& seeds) {
  Bundle bundle;
  for (const auto& [name, file] : directory.files()) {
    MUSTER_ASSIGN(bundle[name], directory.Read(file, 0, file.length));
    if (name.ends_with(".fdt") || name.ends_with(".cfs")) AddChunks(bundle[name], seeds);
  }
  seeds.Add("segment", ToBytes(bundle));
  seeds.Add("doc_values", ToBytes(bundle));
  return {};
}

Status AddShards(const std::string& folder, Seeds& seeds) {
  MUSTER_ASSIGN(auto blobs, lucene::OpenFolder(folder));
  MUSTER_ASSIGN(const auto repository, lucene::Repository::Open(std::move(blobs)));
  MUSTER_ASSIGN(const std::vector<lucene::Snapshot> snapshots, repository.ReadSnapshots());
  for (const lucene::Snapshot& snapshot : snapshots) {
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
