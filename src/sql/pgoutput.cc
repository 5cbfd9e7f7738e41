#include "sql/pgoutput.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace muster::sql {
namespace {

// Microseconds are counted from 2000-01-01.
constexpr std::chrono::sys_days kEpoch = std::chrono::year{2000} / 1 / 1;

// Reads big-endian numbers. After a read beyond the end it is broken, and returns zeros.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    uint64_t value = 0;
    for (const char byte : Bytes(sizeof(T))) value = value << 8 | static_cast<uint8_t>(byte);
    return static_cast<T>(value);
  }
  char Byte() { return Number<char>(); }

  std::string_view Bytes(size_t count) {
    if (count > rest_.size()) {
      Break();
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  // Up to a NUL.
  std::string_view Text() {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) {
      Break();
      return {};
    }
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  WallTime Time() {
    const std::chrono::microseconds since(Number<int64_t>());
    return kEpoch + std::chrono::floor<std::chrono::milliseconds>(since);
  }

  // A count of parts of at least `bytes` each: a larger one is invalid.
  size_t Count(int64_t count, size_t bytes) {
    if (count >= 0 && static_cast<size_t>(count) <= rest_.size() / bytes) {
      return static_cast<size_t>(count);
    }
    Break();
    return 0;
  }

  void Break() {
    broken_ = true;
    rest_ = {};
  }
  bool IsWhole() const { return !broken_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool broken_ = false;
};

PgTuple TupleAt(Cursor& in) {
  PgTuple tuple(in.Count(in.Number<int16_t>(), 1));
  for (PgField& field : tuple) {
    switch (in.Byte()) {
      case 'n':
        break;
      case 'u':
        field.kind = PgField::Kind::kUnchanged;
        break;
      case 't':
        field = {PgField::Kind::kText, in.Bytes(in.Count(in.Number<int32_t>(), 1))};
        break;
      default:  // binary values are not requested
        in.Break();
    }
  }
  return tuple;
}

PgRelation RelationAt(Cursor& in) {
  PgRelation relation{.oid = in.Number<uint32_t>()};
  relation.schema = in.Text();
  if (relation.schema.empty()) relation.schema = "pg_catalog";
  relation.table = in.Text();
  relation.identity = in.Byte();
  relation.columns.resize(in.Count(in.Number<int16_t>(), 10));
  for (PgColumn& column : relation.columns) {
    column.is_key = (in.Byte() & 1) != 0;
    column.name = in.Text();
    column.type = in.Number<uint32_t>();
    column.modifier = in.Number<int32_t>();
  }
  return relation;
}

PgChange ChangeAt(PgChange::Kind kind, Cursor& in) {
  PgChange change{.kind = kind, .relation = in.Number<uint32_t>()};
  char part = in.Byte();
  if (part == 'K' || part == 'O') {
    if (kind == PgChange::Kind::kInsert) in.Break();
    change.old = TupleAt(in);
    if (kind == PgChange::Kind::kDelete) return change;
    part = in.Byte();
  }
  if (part != 'N' || kind == PgChange::Kind::kDelete) in.Break();
  change.row = TupleAt(in);
  return change;
}

PgTruncate TruncateAt(Cursor& in) {
  const auto count = in.Number<int32_t>();
  in.Byte();  // whether it cascades or restarts sequences
  PgTruncate truncate;
  truncate.relations.resize(in.Count(count, 4));
  for (uint32_t& oid : truncate.relations) oid = in.Number<uint32_t>();
  return truncate;
}

PgMark MarkAt(Cursor& in) {
  in.Byte();             // whether it is part of a transaction
  in.Number<int64_t>();  // its position
  PgMark mark{.prefix = in.Text(), .content = {}};
  mark.content = in.Bytes(in.Count(in.Number<int32_t>(), 1));
  return mark;
}

PgBegin BeginAt(Cursor& in) {
  PgBegin begin{.commit = in.Number<uint64_t>()};
  begin.time = in.Time();
  begin.xid = in.Number<uint32_t>();
  return begin;
}

PgCommit CommitAt(Cursor& in) {
  in.Byte();              // flags
  in.Number<uint64_t>();  // as PgBegin::commit
  const PgCommit commit{.end = in.Number<uint64_t>()};
  in.Time();
  return commit;
}

}  // namespace

std::string PgLsnText(PgLsn lsn) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%X/%X", static_cast<uint32_t>(lsn >> 32),
                static_cast<uint32_t>(lsn));
  return text.data();
}

std::optional<PgLsn> ParsePgLsn(std::string_view text) {
  const auto half = [](std::string_view digits) -> std::optional<uint32_t> {
    uint32_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stopped, failed] = std::from_chars(digits.data(), end, value, 16);
    if (failed != std::errc() || stopped != end) return std::nullopt;
    return value;
  };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto high = half(text.substr(0, slash));
  const auto low = half(text.substr(slash + 1));
  if (!high || !low) return std::nullopt;
  return static_cast<PgLsn>(*high) << 32 | *low;
}

Result<PgMessage> DecodePgOutput(std::string_view bytes) {
  Cursor in(bytes);
  const char kind = in.Byte();
  PgMessage message = PgIgnored{};
  switch (kind) {
    case 'B':
      message = BeginAt(in);
      break;
    case 'C':
      message = CommitAt(in);
      break;
    case 'R':
      message = RelationAt(in);
      break;
    case 'I':
      message = ChangeAt(PgChange::Kind::kInsert, in);
      break;
    case 'U':
      message = ChangeAt(PgChange::Kind::kUpdate, in);
      break;
    case 'D':
      message = ChangeAt(PgChange::Kind::kDelete, in);
      break;
    case 'T':
      message = TruncateAt(in);
      break;
    case 'M':
      message = MarkAt(in);
      break;
    case 'O':
    case 'Y':
      return message;
    default:
      in.Break();
  }
  if (in.IsWhole()) return message;
  return Error{Code::kCorrupt, "a message of the change stream cannot be decoded: kind " +
                                   std::to_string(static_cast<unsigned char>(kind)) + ", " +
                                   std::to_string(bytes.size()) + " bytes"};
}

}  // namespace muster::sql
