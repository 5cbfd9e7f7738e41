#include "sql/sqlite_url.h"

namespace muster::sql {

Result<std::string> SqliteFileOf(const Url& url, std::string_view what) {
  if (!url.host.empty()) {
    return Error{Code::kInvalid, std::string(what) + " names a host, but SQLite is a file",
                 "write sqlite:FILE#TABLE, without the double slash"};
  }
  if (url.path.empty()) {
    return Error{Code::kInvalid, std::string(what) + " names no file", "write sqlite:FILE#TABLE"};
  }
  return url.path;
}

}  // namespace muster::sql
