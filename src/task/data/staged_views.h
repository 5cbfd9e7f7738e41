#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/result.h"
#include "sql/duckdb.h"
#include "task/data/staging.h"

namespace muster::task {

// A DuckDB that can access the staging folder and nothing else.
Result<std::unique_ptr<sql::DuckDb>> OpenStagedDuckDb(const Staging& staging);

// The FROM clause that reads a staged file with exactly these columns and types.
std::string StagedRowsSql(const std::string& path, const std::string& format,
                          const std::vector<std::pair<std::string, std::string>>& columns);

// Creates a view for each staged object, under its name. An object without columns gets the column
// `_empty`, and no rows.
Status MakeStagedViews(sql::DuckDb& db, const Staging& staging,
                       const std::vector<Manifest>& objects);

}  // namespace muster::task
