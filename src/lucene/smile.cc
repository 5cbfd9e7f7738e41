#include "lucene/smile.h"

#include <bit>
#include <string>
#include <vector>

#include "lucene/byte_reader.h"

namespace muster::lucene {
namespace {

constexpr size_t kMaxShared = 1024;
constexpr int kMaxDepth = 100;
constexpr uint8_t kEndOfString = 0xFC;
constexpr uint8_t kEndOfArray = 0xF9;
constexpr uint8_t kEndOfObject = 0xFB;

// Names or values that later ones refer back to.
class SharedStrings {
 public:
  void Add(std::string_view text) {
    if (texts_.size() == kMaxShared) texts_.clear();
    texts_.emplace_back(text);
  }
  std::string_view Get(size_t index, ByteReader& reader) const {
    if (index < texts_.size()) return texts_[index];
    reader.Fail("it refers to a text that was not there");
    return {};
  }

 private:
  std::vector<std::string> texts_;
};

class SmileParser {
 public:
  SmileParser(std::string_view bytes, std::string_view origin) : reader_(bytes, origin) {}

  Result<Json> Parse() {
    reader_.Expect(reader_.Take(3) == ":)\n", "no SMILE header where one should be");
    const uint8_t flags = reader_.U8();
    share_names_ = (flags & 1) != 0;
    share_values_ = (flags & 2) != 0;
    Json value = Value(reader_.U8(), 0);
    MUSTER_TRY(reader_.status());
    return value;
  }

 private:
  // Groups of 7 bits, most significant first; the last byte has its high bit set and 6 bits.
  uint64_t Number() {
    uint64_t value = 0;
    for (int i = 0; i < 10; ++i) {
      const uint8_t byte = reader_.U8();
      if (byte >= 128) return value << 6 | (byte & 63);
      value = value << 7 | byte;
    }
    reader_.Fail("a number has too many bytes");
    return 0;
  }

  uint64_t SevenBitGroups(int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 7 | (reader_.U8() & 127);
    return value;
  }

  std::string LongText() {
    std::string text;
    while (reader_.ok()) {
      const uint8_t byte = reader_.U8();
      if (byte == kEndOfString) break;
      text += static_cast<char>(byte);
    }
    return text;
  }

  Json ShortText(size_t length) {
    const std::string_view text = reader_.Take(length);
    if (share_values_) values_.Add(text);
    return std::string(text);
  }

  Json Array(int depth) {
    Json array = Json::array();
    while (reader_.ok()) {
      const uint8_t token = reader_.U8();
      if (token == kEndOfArray) break;
      array.push_back(Value(token, depth + 1));
    }
    return array;
  }

  std::string Key(uint8_t token) {
    if (token == 0x20) return {};
    if (token >= 0x30 && token <= 0x33) {
      return std::string(names_.Get((token & 3) << 8 | reader_.U8(), reader_));
    }
    if (token == 0x34) {
      // The specification omits long names, but servers share them too.
      std::string text = LongText();
      if (share_names_) names_.Add(text);
      return text;
    }
    if (token >= 0x40 && token <= 0x7F) return std::string(names_.Get(token - 0x40, reader_));
    if (token < 0x80 || token > 0xF7) {
      reader_.Fail("an unknown kind of key");
      return {};
    }
    const std::string_view text =
        reader_.Take(token < 0xC0 ? token - 0x80U + 1 : token - 0xC0U + 2);
    if (share_names_) names_.Add(text);
    return std::string(text);
  }

  Json Object(int depth) {
    Json object = Json::object();
    while (reader_.ok()) {
      const uint8_t token = reader_.U8();
      if (token == kEndOfObject) break;
      std::string key = Key(token);
      object[std::move(key)] = Value(reader_.U8(), depth + 1);
    }
    return object;
  }

  Json Binary() {
    const std::string_view bytes = reader_.Take(Number());
    return Json::binary({bytes.begin(), bytes.end()});
  }

  Json Value(uint8_t token, int depth) {
    if (depth > kMaxDepth) reader_.Fail("it is nested too deeply");
    if (!reader_.ok()) return {};
    if (token >= 0x01 && token <= 0x1F) return std::string(values_.Get(token - 1, reader_));
    if (token >= 0x40 && token <= 0x7F) return ShortText(token - 0x40U + 1);
    if (token >= 0x80 && token <= 0xBF) return ShortText(token - 0x80U + 2);
    if (token >= 0xC0 && token <= 0xDF) return ZigZag(token & 31);
    if (token >= 0xEC && token <= 0xEF) {
      return std::string(values_.Get((token & 3) << 8 | reader_.U8(), reader_));
    }
    switch (token) {
      case 0x20:
        return "";
      case 0x21:
        return nullptr;
      case 0x22:
        return false;
      case 0x23:
        return true;
      case 0x24:
      case 0x25:
        return ZigZag(Number());
      case 0x28:
        return std::bit_cast<float>(static_cast<uint32_t>(SevenBitGroups(5)));
      case 0x29:
        return std::bit_cast<double>(SevenBitGroups(10));
      case 0xE0:
      case 0xE4:
        return LongText();
      case 0xF8:
        return Array(depth);
      case 0xFA:
        return Object(depth);
      case 0xFD:
        return Binary();
      default:
        reader_.Fail("SMILE token " + std::to_string(token) + " is not understood",
                     Code::kIncompatible);
        return {};
    }
  }

  ByteReader reader_;
  bool share_names_ = false;
  bool share_values_ = false;
  SharedStrings names_;
  SharedStrings values_;
};

}  // namespace

Result<Json> ParseSmile(std::string_view bytes, std::string_view origin) {
  return SmileParser(bytes, origin).Parse();
}

}  // namespace muster::lucene
