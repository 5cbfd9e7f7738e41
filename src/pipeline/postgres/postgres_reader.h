#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "pipeline/postgres/postgres_relation.h"
#include "pipeline/postgres/postgres_snapshot.h"
#include "sql/postgres.h"
#include "sql/postgres_copy.h"

namespace muster::pipeline {

// Streams the rows of one partition in key order. A lost connection is replaced, and reading
// continues after the last row.
class PostgresReader final : public Reader {
 public:
  // `env`, `snapshot` and `relation` must outlive the reader.
  PostgresReader(Env& env, PostgresSnapshot& snapshot, const PgRelation& relation, std::string part,
                 std::string begin, std::string end, std::stop_token stop);

  // Fetches the first row, so that errors show up at once.
  Status Start();

  Result<std::optional<Document>> Next() override;
  Result<std::optional<std::string>> Split() override;

 private:
  Status Connect();
  Result<bool> Fetch();  // false: no more rows
  Result<std::optional<std::string>> MiddleOf(sql::PgConnection& connection,
                                              const std::string& sample);

  Env& env_;
  PostgresSnapshot& snapshot_;
  const PgRelation& relation_;
  const std::string part_;
  const std::stop_token stop_;
  std::string position_;  // after the last row returned
  std::string end_;
  std::unique_ptr<sql::PgConnection> connection_;
  std::optional<sql::PgCopyOut> copy_;
  bool header_ = true;  // precedes the first row
  bool done_ = false;
  std::vector<std::optional<std::string_view>> fields_;
  std::vector<std::string_view> key_;
};

}  // namespace muster::pipeline
