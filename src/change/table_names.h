#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sql/postgres_values.h"

namespace muster::change {

struct TableParts {
  std::string schema;
  std::string table;
};

// Of "shop.orders"; a name without a schema is in public.
inline TableParts PartsOf(const std::string& table) {
  const size_t dot = table.find('.');
  if (dot == std::string::npos) return {"public", table};
  return {table.substr(0, dot), table.substr(dot + 1)};
}

inline std::string Quoted(const std::string& table) {
  const TableParts parts = PartsOf(table);
  return sql::PgIdentifier(parts.schema) + "." + sql::PgIdentifier(parts.table);
}

inline std::string Joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

}  // namespace muster::change
