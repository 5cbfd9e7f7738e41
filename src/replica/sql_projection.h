#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/replica.h"

namespace muster {

enum class SqlDialect { kSqlite, kPostgres };

// A projection made of SQL; see SqlTemplate for what a statement may hold.
struct SqlProjectionSpec {
  std::string name;
  std::vector<std::string> tables = {};  // kept in a version each; readers see views of these names
  std::vector<std::string> setup = {};   // creates what is not there
  std::vector<std::string> clear = {};   // empties it; by default, the tables
  std::map<std::string, std::vector<std::string>> on = {};  // by type of event; "*": any other
};

// kInvalid names the statement that is wrong.
Result<std::shared_ptr<Projection>> NewSqlProjection(const SqlProjectionSpec& spec,
                                                     SqlDialect dialect);

}  // namespace muster
