#include "lucene/document.h"

#include <array>
#include <bit>

#include "core/utf8.h"
#include "lucene/base64.h"
#include "lucene/byte_reader.h"

namespace muster::lucene {
namespace {

constexpr uint8_t kDecimalId = 0xFE;
constexpr uint8_t kTextId = 0xFF;
constexpr uint8_t kEscapedId = 0xFD;

enum Type : uint32_t { kString = 0, kBinary, kInt, kFloat, kLong, kDouble };

float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
double DoubleOf(uint64_t bits) { return std::bit_cast<double>(bits); }

// Small integers in one byte, other positive numbers without a sign.
float ReadFloat(ByteReader& reader) {
  const uint32_t first = reader.U8();
  if (first == 255) return FloatOf(reader.U32());
  if (first >= 128) return static_cast<float>(static_cast<int>(first & 127) - 1);
  const uint32_t middle = reader.U16();
  return FloatOf(first << 24 | middle << 8 | reader.U8());
}

double ReadDouble(ByteReader& reader) {
  const uint64_t first = reader.U8();
  if (first == 255) return DoubleOf(reader.U64());
  if (first == 254) return static_cast<double>(FloatOf(reader.U32()));
  if (first >= 128) return static_cast<double>(static_cast<int>(first & 127) - 1);
  const uint64_t high = reader.U32();
  const uint64_t low = reader.U16();
  return DoubleOf(first << 56 | high << 24 | low << 8 | reader.U8());
}

// Times are often whole seconds, hours or days.
int64_t ReadLong(ByteReader& reader) {
  constexpr std::array<uint64_t, 4> kUnits = {1, 1000, 3600000, 86400000};
  const uint64_t first = reader.U8();
  uint64_t bits = first & 31;
  if ((first & 32) != 0) bits |= reader.VLong() << 5;
  return static_cast<int64_t>(static_cast<uint64_t>(ZigZag(bits)) * kUnits[first >> 6]);
}

IndexedValue ReadNumber(ByteReader& reader, uint32_t type, NumberForm form) {
  const bool is_fixed = form == NumberForm::kFixed;
  switch (type) {
    case kInt:
      return is_fixed ? int64_t{reader.I32()} : ZigZag(reader.VInt());
    case kFloat:
      return is_fixed ? FloatOf(reader.U32()) : ReadFloat(reader);
    case kLong:
      return is_fixed ? reader.I64() : ReadLong(reader);
    default:
      return is_fixed ? DoubleOf(reader.U64()) : ReadDouble(reader);
  }
}

void SkipNumber(ByteReader& reader, uint32_t type, NumberForm form) {
  if (form == NumberForm::kFixed) return reader.Skip(type == kInt || type == kFloat ? 4 : 8);
  switch (type) {
    case kInt:
      reader.VInt();
      return;
    case kFloat: {
      const uint8_t first = reader.U8();
      return reader.Skip(first == 255 ? 4 : first >= 128 ? 0 : 3);
    }
    case kLong:
      if ((reader.U8() & 32) != 0) reader.VLong();
      return;
    default: {
      const uint8_t first = reader.U8();
      return reader.Skip(first == 255 ? 8 : first == 254 ? 4 : first >= 128 ? 0 : 7);
    }
  }
}

Error BadId() { return Error{Code::kCorrupt, "an _id that cannot be decoded"}; }

Status DecodeDecimalId(std::string_view digits, std::string& id) {
  if (digits.empty()) return BadId();
  const bool is_odd = (static_cast<uint8_t>(digits.back()) & 15) == 15;
  id.resize(2 * digits.size());
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto byte = static_cast<uint8_t>(digits[i]);
    const int high = byte >> 4;
    const int low = byte & 15;
    if (high > 9 || (low > 9 && !(is_odd && i + 1 == digits.size()))) return BadId();
    id[2 * i] = static_cast<char>('0' + high);
    id[2 * i + 1] = static_cast<char>('0' + low);
  }
  if (is_odd) id.pop_back();
  return {};
}

// "TYPE#ID", as up to Elasticsearch 5.
Status SplitUid(std::string_view uid, Document& document) {
  const size_t hash = uid.find('#');
  if (hash == std::string_view::npos) return Error{Code::kCorrupt, "a _uid without a type"};
  document.type = uid.substr(0, hash);
  document.id = uid.substr(hash + 1);
  return {};
}

// What was read of a document before its naming scheme is known.
struct RawFields {
  std::optional<std::string_view> uid;
  std::optional<std::string_view> id;
  bool id_is_text = false;
};

void TakeField(uint64_t number, bool is_text, std::string_view value, const DocumentFields& fields,
               RawFields& raw, Document& document) {
  if (fields.source == number) {
    document.source = value;
  } else if (fields.id == number) {
    raw.id = value;
    raw.id_is_text = is_text;
  } else if (fields.uid == number) {
    raw.uid = value;
  } else if (fields.routing == number) {
    document.routing = value;
  } else if (fields.recovery_source == number) {
    document.recovery_source = value;
  }
}

Status NameDocument(const RawFields& raw, Document& document) {
  if (raw.uid) {
    MUSTER_TRY(SplitUid(*raw.uid, document));
  } else if (raw.id_is_text) {
    document.id = *raw.id;
  } else {
    MUSTER_TRY(DecodeId(*raw.id, document.id));
  }
  if (ValidUtf8Prefix(document.id) != document.id.size()) return BadId();
  if (document.routing && ValidUtf8Prefix(*document.routing) != document.routing->size()) {
    return Error{Code::kCorrupt, "a _routing that is not UTF-8"};
  }
  if (document.source && document.source->starts_with("ZV")) {
    return Error{
        Code::kIncompatible,
        "document " + document.id + ": its _source is packed with LZF, which is not supported",
        "it comes from the mapping's _source.compress of Elasticsearch 1"};
  }
  return {};
}

}  // namespace

DocumentFields DocumentFields::Find(const std::vector<FieldInfo>& fields) {
  DocumentFields found;
  for (const FieldInfo& field : fields) {
    if (field.name == "_id") found.id = field.number;
    if (field.name == "_uid") found.uid = field.number;
    if (field.name == "_routing") found.routing = field.number;
    if (field.name == "_source") found.source = field.number;
    if (field.name == "_recovery_source") found.recovery_source = field.number;
  }
  return found;
}

Status DecodeId(std::string_view bytes, std::string& id) {
  id.clear();
  if (bytes.empty()) return BadId();
  switch (static_cast<uint8_t>(bytes.front())) {
    case kDecimalId:
      return DecodeDecimalId(bytes.substr(1), id);
    case kTextId:
      id = bytes.substr(1);
      return {};
    case kEscapedId:
      AppendBase64Url(bytes.substr(1), id);
      return {};
    default:
      AppendBase64Url(bytes, id);
      return {};
  }
}

Result<bool> ParseDocument(std::string_view bytes, uint32_t field_count,
                           const DocumentFields& fields, NumberForm form, ByteOrder order,
                           Document& document) {
  document.type.clear();
  document.id.clear();
  document.routing = document.source = document.recovery_source = std::nullopt;
  RawFields raw;
  ByteReader reader(bytes, "its stored fields", order);
  for (uint32_t i = 0; i < field_count && reader.ok(); ++i) {
    const uint64_t key = reader.VLong();
    const uint32_t type = key & 7;
    const auto wanted = fields.wanted.empty() ? fields.wanted.end() : fields.wanted.find(key >> 3);
    if (wanted != fields.wanted.end() && type <= kDouble) {
      std::vector<IndexedValue>& values = document.fields[wanted->second];
      if (type == kString || type == kBinary) {
        values.emplace_back(std::string(reader.String()));
      } else {
        values.push_back(ReadNumber(reader, type, form));
      }
    } else if (type == kString || type == kBinary) {
      TakeField(key >> 3, type == kString, reader.String(), fields, raw, document);
    } else if (type <= kDouble) {
      SkipNumber(reader, type, form);
    } else {
      reader.Fail("a stored field of an unknown type");
    }
  }
  reader.Expect(reader.left() == 0, "a document with more bytes than fields");
  if (!reader.ok()) return reader.status().error();
  if (!raw.uid && !raw.id) return false;
  MUSTER_TRY(NameDocument(raw, document));
  return true;
}

}  // namespace muster::lucene
