#include "cli/existing_store.h"

#include <filesystem>

#include "core/url.h"
#include "sql/sqlite_url.h"

namespace muster::cli {

Status CheckStoreExists(const std::string& url) {
  const auto parsed = ParseUrl(url);
  if (!parsed || parsed->scheme != "sqlite") return {};
  const auto file = sql::SqliteFileOf(*parsed, "store");
  if (!file) return {};
  if (std::error_code error; std::filesystem::exists(*file, error) || error) return {};
  return Error{Code::kNotFound, "no store at " + *file,
               "--store or MUSTER_STORE names it; 'muster worker' and 'muster run' create one"};
}

}  // namespace muster::cli
