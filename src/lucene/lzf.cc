#include "lucene/lzf.h"

#include "lucene/byte_reader.h"

namespace muster::lucene {
namespace {

// One block: appends exactly `size` bytes to `out`.
void DecodeBlock(std::string_view in, size_t size, std::string& out, ByteReader& framing) {
  ByteReader reader(in, "LZF data");
  const size_t start = out.size();
  while (reader.left() > 0) {
    const uint8_t control = reader.U8();
    if (control < 32) {
      out += reader.Take(control + 1);
      continue;
    }
    size_t length = control >> 5;
    if (length == 7) length += reader.U8();
    length += 2;
    const size_t distance = ((control & 31) << 8 | reader.U8()) + 1;
    if (!reader.ok() || distance > out.size() - start || out.size() - start + length > size) {
      return framing.Fail("damaged LZF data");
    }
    for (size_t i = 0; i < length; ++i) out += out[out.size() - distance];
  }
  framing.Expect(reader.ok() && out.size() - start == size, "damaged LZF data");
}

}  // namespace

Result<std::string> DecodeLzf(std::string_view in, size_t max_bytes) {
  ByteReader reader(in, "LZF data");
  std::string out;
  while (reader.left() > 0) {
    reader.Expect(reader.Take(2) == "ZV", "no LZF block where one should be");
    const uint8_t type = reader.U8();
    reader.Expect(type <= 1, "an unknown kind of LZF block");
    const size_t length = reader.U16();
    const size_t size = type == 0 ? length : reader.U16();
    reader.Expect(out.size() + size <= max_bytes, "it decompresses to more than the limit");
    const std::string_view data = reader.Take(length);
    if (!reader.ok()) break;
    if (type == 0) {
      out += data;
    } else {
      DecodeBlock(data, size, out, reader);
    }
  }
  MUSTER_TRY(reader.status());
  return out;
}

}  // namespace muster::lucene
