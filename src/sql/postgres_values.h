#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/env.h"

struct pg_result;

namespace muster::sql {

class PgConnection;

// The parameters of one call, in order. Text and array bytes are not copied: they must live until
// the call returns.
class PgParams {
 public:
  static constexpr size_t kMax = 64;

  PgParams() = default;
  PgParams(const PgParams&) = delete;
  PgParams& operator=(const PgParams&) = delete;

  PgParams& Text(std::string_view bytes);  // text, json, or the bytes of a PgArray
  PgParams& Int64(int64_t value);          // bigint
  PgParams& Int32(int32_t value);          // integer
  PgParams& Time(WallTime value);          // timestamptz; WallTime::min(): -infinity
  // A text literal of any type; the server infers the type from context.
  PgParams& Literal(const std::string& text);
  PgParams& Null();

 private:
  friend class PgConnection;
  static constexpr int kText = 0;
  static constexpr int kBinary = 1;

  PgParams& Add(const char* value, size_t length, int format = kBinary);

  int count_ = 0;
  std::array<const char*, kMax> values_;
  std::array<int, kMax> lengths_;
  std::array<int, kMax> formats_;
  std::array<std::array<char, 8>, kMax> numbers_;
};

// A one-dimensional array in PostgreSQL's binary format.
class PgArray {
 public:
  enum class Element : uint32_t { kBigint = 20, kInteger = 23, kText = 25, kJson = 114 };

  // Exactly `count` elements must be added.
  PgArray(Element element, size_t count, size_t expected_bytes = 0);

  void Text(std::string_view bytes);
  void Int64(int64_t value);
  void Int32(int32_t value);
  void Null();

  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The rows of one statement. Row and column must be in range; reading a number from a column of
// another width aborts.
class PgResult {
 public:
  explicit PgResult(pg_result* result) : result_(result) {}

  bool empty() const { return result_ == nullptr; }
  int rows() const;
  int columns() const;
  std::string_view ColumnName(int column) const;
  int64_t ColumnType(int column) const;  // the oid of its type
  int64_t affected() const;              // rows changed by an INSERT, UPDATE or DELETE
  bool IsNull(int row, int column) const;
  std::string_view Text(int row, int column) const;  // valid as long as this result
  int64_t Int64(int row, int column) const;
  int32_t Int32(int row, int column) const;
  WallTime Time(int row, int column) const;  // timestamptz, rounded down to milliseconds

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

// `name` as an SQL identifier, in double quotes.
std::string PgIdentifier(std::string_view name);

// `text` as an SQL literal. Must not contain a NUL.
std::string PgLiteral(std::string_view text);

}  // namespace muster::sql
