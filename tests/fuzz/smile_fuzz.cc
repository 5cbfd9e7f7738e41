// SMILE and CBOR, without their envelope.

#include <cstdint>

#include "lucene/cbor.h"
#include "lucene/smile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto smile = muster::lucene::ParseSmile(bytes, "blob");
  const auto cbor = muster::lucene::ParseCbor(bytes, "blob");
  for (const auto* json : {&smile, &cbor}) {
    if (*json) static_cast<void>(muster::ToJsonText(**json));
  }
  return 0;
}
