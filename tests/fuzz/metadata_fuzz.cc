// Metadata of a repository: envelope, compression and content.

#include <initializer_list>

#include "bundle.h"
#include "lucene/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string blob = muster::fuzz::WithRightCrc({reinterpret_cast<const char*>(data), size});
  for (const char* codec : {"snapshot", "metadata", "index-metadata"}) {
    static_cast<void>(muster::lucene::ParseMetadata(blob, codec, "blob"));
  }
  return 0;
}
