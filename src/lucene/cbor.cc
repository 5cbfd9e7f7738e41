#include "lucene/cbor.h"

#include <bit>
#include <cmath>
#include <string>

#include "lucene/byte_reader.h"

namespace muster::lucene {
namespace {

constexpr int kMaxDepth = 100;
constexpr uint8_t kBreak = 0xFF;
constexpr uint64_t kUnknownLength = UINT64_MAX;

enum Major : uint8_t { kUnsigned = 0, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

double FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? HUGE_VAL : NAN)
                                       : std::ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}

class CborParser {
 public:
  CborParser(std::string_view bytes, std::string_view origin) : reader_(bytes, origin) {}

  Result<Json> Parse() {
    Json value = Value(reader_.U8(), 0);
    MUSTER_TRY(reader_.status());
    return value;
  }

 private:
  // The number in or after a token.
  uint64_t Argument(uint8_t token) {
    const uint8_t low = token & 31;
    if (low < 24) return low;
    switch (low) {
      case 24:
        return reader_.U8();
      case 25:
        return reader_.U16();
      case 26:
        return reader_.U32();
      case 27:
        return reader_.U64();
      case 31:
        return kUnknownLength;
      default:
        reader_.Fail("CBOR token " + std::to_string(token) + " is not understood",
                     Code::kIncompatible);
        return 0;
    }
  }

  // Bytes or text, in one piece or in chunks up to a break.
  std::string Run(uint8_t token) {
    const uint64_t length = Argument(token);
    if (length != kUnknownLength) return std::string(reader_.Take(length));
    std::string all;
    for (uint8_t piece = reader_.U8(); reader_.ok() && piece != kBreak; piece = reader_.U8()) {
      reader_.Expect(piece >> 5 == token >> 5 && (piece & 31) != 31, "a piece of another kind");
      all += reader_.Take(Argument(piece));
    }
    return all;
  }

  // Calls `next` with the token of each of `count` entries, or of all up to a break.
  template <class Next>
  void Entries(uint64_t count, Next next) {
    for (uint64_t i = 0; i < count && reader_.ok(); ++i) {
      const uint8_t token = reader_.U8();
      if (count == kUnknownLength && token == kBreak) return;
      next(token);
    }
  }

  Json Simple(uint8_t token) {
    switch (token & 31) {
      case 20:
        return false;
      case 21:
        return true;
      case 22:
      case 23:
        return nullptr;
      case 25:
        return FromHalf(reader_.U16());
      case 26:
        return std::bit_cast<float>(reader_.U32());
      case 27:
        return std::bit_cast<double>(reader_.U64());
      default:
        reader_.Fail("CBOR token " + std::to_string(token) + " is not understood",
                     Code::kIncompatible);
        return {};
    }
  }

  Json Integer(uint8_t token) {
    const uint64_t number = Argument(token);
    reader_.Expect((token & 31) != 31, "a number of indefinite length");
    if (token >> 5 == kUnsigned) return number;
    reader_.Expect(number <= INT64_MAX, "a number beyond 64 bits");
    return -1 - static_cast<int64_t>(number & INT64_MAX);
  }

  Json Value(uint8_t token, int depth) {
    if (depth > kMaxDepth) reader_.Fail("it is nested too deeply");
    if (!reader_.ok()) return {};
    switch (token >> 5) {
      case kUnsigned:
      case kNegative:
        return Integer(token);
      case kBytes: {
        const std::string bytes = Run(token);
        return Json::binary({bytes.begin(), bytes.end()});
      }
      case kText:
        return Run(token);
      case kArray: {
        Json array = Json::array();
        Entries(Argument(token), [&](uint8_t item) { array.push_back(Value(item, depth + 1)); });
        return array;
      }
      case kMap: {
        Json object = Json::object();
        Entries(Argument(token), [&](uint8_t name) {
          reader_.Expect(name >> 5 == kText, "a key that is not a string");
          std::string key = Run(name);
          object[std::move(key)] = Value(reader_.U8(), depth + 1);
        });
        return object;
      }
      case kTag:
        Argument(token);
        return Value(reader_.U8(), depth + 1);
      default:
        return Simple(token);
    }
  }

  ByteReader reader_;
};

}  // namespace

Result<Json> ParseCbor(std::string_view bytes, std::string_view origin) {
  return CborParser(bytes, origin).Parse();
}

bool LooksLikeCbor(std::string_view bytes) {
  if (bytes.starts_with("\xD9\xD9\xF7")) return true;
  const auto first = bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes.front());
  return first == 0xBF || (first >= 0xA0 && first <= 0xBB);
}

}  // namespace muster::lucene
