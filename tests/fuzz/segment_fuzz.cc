// A whole shard: commit, segments, fields, deletions and documents, from the files of a bundle.

#include "bundle.h"
#include "lucene/shard_reader.h"

namespace muster::fuzz {
namespace {

void ReadAll(const Bundle& bundle) {
  const BundleBlobs blobs(bundle);
  const auto directory = OpenBundle(bundle, blobs);
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
