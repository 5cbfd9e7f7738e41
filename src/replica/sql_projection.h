#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/replica.h"

namespace muster::replica {

enum class SqlDialect { kSqlite, kPostgres };

// An SQL projection; see SqlTemplate for the statements' syntax.
struct SqlProjectionSpec {
  std::string name;
  std::vector<std::string> tables = {};  // one copy per version; readers see views of these names
  std::vector<std::string> setup = {};   // creates what is missing
  std::vector<std::string> clear = {};   // clears it; by default, the tables
  std::map<std::string, std::vector<std::string>> on = {};  // by event type; "*": any other
};

// kInvalid names the bad statement.
Result<std::shared_ptr<Projection>> NewSqlProjection(const SqlProjectionSpec& spec,
                                                     SqlDialect dialect);

}  // namespace muster::replica
