// One chunk of stored fields in every format, and its documents. The first four bytes select the
// format.

#include <cstdint>

#include "lucene/chunk.h"
#include "lucene/document.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::lucene;
  if (size < 4) return 0;
  const ChunkFormat format{.packing = static_cast<Packing>(data[0] % 7),
                           .order = (data[1] & 1) != 0 ? ByteOrder::kLittle : ByteOrder::kBig,
                           .chunk_size = 1U << (data[1] >> 4),
                           .token_flags = data[1] >> 1 & 3U,
                           .slices_by_size = (data[1] & 8) != 0,
                           .never_slices = false};
  Chunk chunk;
  if (!chunk.Decode({reinterpret_cast<const char*>(data) + 4, size - 4}, format, data[2], data[3],
                    "_0.fdt", 0)) {
    return 0;
  }
  const DocumentFields fields{.id = 0,
                              .uid = std::nullopt,
                              .routing = 1,
                              .source = 2,
                              .recovery_source = 3,
                              .wanted = {{4, 0}}};
  Document document;
  document.fields.resize(1);
  for (size_t i = 0; i < chunk.size(); ++i) {
    for (const NumberForm form : {NumberForm::kVariable, NumberForm::kFixed}) {
      document.fields[0].clear();
      static_cast<void>(ParseDocument(chunk.Document(i), chunk.FieldCount(i), fields, form,
                                      format.order, document));
    }
  }
  return 0;
}
