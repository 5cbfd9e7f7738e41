#include "sql/postgres_values.h"

#include <endian.h>
#include <postgresql/libpq-fe.h>

#include <cassert>
#include <charconv>
#include <chrono>
#include <cstring>

namespace muster::sql {
namespace {

int32_t ReadInt32(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<int32_t>(be32toh(value));
}

int64_t ReadInt64(const char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<int64_t>(be64toh(value));
}

void AppendInt32(std::string& bytes, int32_t value) {
  const uint32_t big = htobe32(static_cast<uint32_t>(value));
  bytes.append(reinterpret_cast<const char*>(&big), sizeof big);
}

// PostgreSQL's epoch is 2000-01-01, in microseconds.
constexpr auto kServerEpoch = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);

}  // namespace

PgParams& PgParams::Add(const char* value, size_t length, int format) {
  assert(static_cast<size_t>(count_) < kMax);
  values_[count_] = value;
  lengths_[count_] = static_cast<int>(length);
  formats_[count_] = format;
  ++count_;
  return *this;
}

PgParams& PgParams::Text(std::string_view bytes) {
  // A null pointer would mean SQL NULL.
  return Add(bytes.data() == nullptr ? "" : bytes.data(), bytes.size());
}

PgParams& PgParams::Int64(int64_t value) {
  const uint64_t big = htobe64(static_cast<uint64_t>(value));
  std::memcpy(numbers_[count_].data(), &big, sizeof big);
  return Add(numbers_[count_].data(), sizeof big);
}

PgParams& PgParams::Int32(int32_t value) {
  const uint32_t big = htobe32(static_cast<uint32_t>(value));
  std::memcpy(numbers_[count_].data(), &big, sizeof big);
  return Add(numbers_[count_].data(), sizeof big);
}

PgParams& PgParams::Time(WallTime value) {
  if (value == WallTime::min()) return Int64(INT64_MIN);
  return Int64(std::chrono::microseconds(value - kServerEpoch).count());
}

PgParams& PgParams::Literal(const std::string& text) {
  return Add(text.c_str(), text.size(), kText);
}

PgParams& PgParams::Null() { return Add(nullptr, 0); }

PgArray::PgArray(Element element, size_t count, size_t expected_bytes) {
  bytes_.reserve(20 + count * 12 + expected_bytes);
  AppendInt32(bytes_, 1);  // dimensions
  AppendInt32(bytes_, 1);  // has nulls flag
  AppendInt32(bytes_, static_cast<int32_t>(element));
  AppendInt32(bytes_, static_cast<int32_t>(count));
  AppendInt32(bytes_, 1);  // lower bound
}

void PgArray::Text(std::string_view bytes) {
  AppendInt32(bytes_, static_cast<int32_t>(bytes.size()));
  bytes_ += bytes;
}

void PgArray::Int64(int64_t value) {
  const uint64_t big = htobe64(static_cast<uint64_t>(value));
  Text({reinterpret_cast<const char*>(&big), sizeof big});
}

void PgArray::Int32(int32_t value) {
  AppendInt32(bytes_, sizeof value);
  AppendInt32(bytes_, value);
}

void PgArray::Null() { AppendInt32(bytes_, -1); }

void PgResult::Clear::operator()(pg_result* result) const { PQclear(result); }

int PgResult::rows() const { return PQntuples(result_.get()); }

int PgResult::columns() const { return PQnfields(result_.get()); }

std::string_view PgResult::ColumnName(int column) const { return PQfname(result_.get(), column); }

int64_t PgResult::ColumnType(int column) const { return PQftype(result_.get(), column); }

int64_t PgResult::affected() const {
  const std::string_view count = PQcmdTuples(result_.get());
  int64_t value = 0;
  std::from_chars(count.data(), count.data() + count.size(), value);
  return value;
}

bool PgResult::IsNull(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view PgResult::Text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

int64_t PgResult::Int64(int row, int column) const {
  assert(PQgetlength(result_.get(), row, column) == 8);
  return ReadInt64(PQgetvalue(result_.get(), row, column));
}

int32_t PgResult::Int32(int row, int column) const {
  assert(PQgetlength(result_.get(), row, column) == 4);
  return ReadInt32(PQgetvalue(result_.get(), row, column));
}

WallTime PgResult::Time(int row, int column) const {
  const std::chrono::microseconds since{Int64(row, column)};
  return kServerEpoch + std::chrono::floor<std::chrono::milliseconds>(since);
}

std::string PgIdentifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string PgLiteral(std::string_view text) {
  const bool escapes = text.find('\\') != std::string_view::npos;
  std::string quoted = escapes ? "E'" : "'";  // correct whatever standard_conforming_strings is
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + '\'';
}

}  // namespace muster::sql
