#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "muster/replica.h"
#include "replica/read_model.h"
#include "sql/postgres.h"
#include "sql/postgres_pool.h"

namespace muster::replica {

// A statement with its parameters, and the arrays and texts that these refer to.
struct PostgresModelCall {
  explicit PostgresModelCall(sql::PgStatement what) : statement(std::move(what)) {}
  sql::PgStatement statement;
  std::deque<std::string> texts;
  std::deque<sql::PgArray> arrays;
  sql::PgParams params;

  PostgresModelCall& Of(const Instance& instance) {
    params.Text(texts.emplace_back(instance.set)).Text(texts.emplace_back(instance.projection));
    params.Int32(instance.version);
    return *this;
  }
  template <class Items, class Get>
  PostgresModelCall& Ints(const Items& items, Get get) {
    sql::PgArray& array = arrays.emplace_back(sql::PgArray::Element::kInteger, items.size());
    for (const auto& item : items) array.Int32(get(item));
    params.Text(array.bytes());
    return *this;
  }
  template <class Items, class Get>
  PostgresModelCall& Longs(const Items& items, Get get) {
    sql::PgArray& array = arrays.emplace_back(sql::PgArray::Element::kBigint, items.size());
    for (const auto& item : items) array.Int64(get(item));
    params.Text(array.bytes());
    return *this;
  }
  template <class Items, class Get>
  PostgresModelCall& Texts(const Items& items, Get get) {
    sql::PgArray& array = arrays.emplace_back(sql::PgArray::Element::kText, items.size());
    for (const auto& item : items) array.Text(get(item));
    params.Text(array.bytes());
    return *this;
  }
};

// Statements are queued until the first query or the commit, so that a batch costs one round trip.
class PostgresModelTransaction final : public Transaction {
 public:
  // Takes a connection of `pool` when it sends something, or of `patient` if calls may take long.
  PostgresModelTransaction(sql::PostgresPool& pool, sql::PostgresPool& patient)
      : pool_(&pool), patient_(&patient) {}
  ~PostgresModelTransaction() override;

  Status Execute(const std::string& sql, std::vector<SqlValue> params) override;
  Result<std::vector<std::vector<SqlValue>>> Query(const std::string& sql,
                                                   std::vector<SqlValue> params) override;

  std::deque<PostgresModelCall>& waiting() { return waiting_; }
  void LimitIdle(milliseconds limit) { idle_limit_ = limit; }
  void AllowLongCalls() { pool_ = patient_; }
  void EndCallsBy(MonoTime deadline) { deadline_ = deadline; }

  // Without a query, everything is one implicit transaction.
  Status Commit();

 private:
  Status Queue(const std::string& sql, std::vector<SqlValue> params, bool answers);
  Result<std::vector<sql::PgResult>> Send();

  sql::PostgresPool* pool_;
  sql::PostgresPool* const patient_;
  std::optional<sql::PostgresPool::Lease> lease_;
  std::deque<PostgresModelCall> waiting_;
  bool begun_ = false;
  milliseconds idle_limit_{0};
  MonoTime deadline_ = MonoTime::max();
};

}  // namespace muster::replica
