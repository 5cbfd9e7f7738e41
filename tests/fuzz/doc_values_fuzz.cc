// The doc values of every field of a shard, from the files of a bundle.

#include <algorithm>

#include "bundle.h"
#include "lucene/doc_values.h"

namespace muster::fuzz {
namespace {

constexpr uint32_t kMaxDocuments = 300;

void ReadSegment(const lucene::SegmentFiles& files) {
  const auto fields = lucene::ReadFieldInfos(files);
  if (!fields) return;
  lucene::SegmentDocValues doc_values(files, *fields);
  const auto max_doc = static_cast<uint32_t>(files.info().max_doc);
  for (const lucene::FieldInfo& field : *fields) {
    const auto opened = doc_values.Open(field);
    if (!opened || !*opened) continue;
    std::vector<lucene::IndexedValue> values;
    bool is_good = true;
    for (uint32_t doc = 0; doc < std::min(kMaxDocuments, max_doc) && is_good; ++doc) {
      values.clear();
      is_good = (*opened)->Read(doc, values).has_value();
    }
    // Back, and far ahead.
    static_cast<void>((*opened)->Read(0, values));
    static_cast<void>((*opened)->Read(max_doc, values));
  }
}

void ReadAll(const Bundle& bundle) {
  const BundleBlobs blobs(bundle);
  const auto directory = OpenBundle(bundle, blobs);
  if (!directory) return;
  const auto commits = lucene::ReadSegments(*directory);
  if (!commits) return;
  for (const lucene::SegmentCommit& commit : *commits) {
    const auto files = lucene::SegmentFiles::Open(*directory, commit);
    if (files) ReadSegment(*files);
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
