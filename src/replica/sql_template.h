#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/events.h"
#include "muster/replica.h"
#include "muster/result.h"

namespace muster::replica {

// An SQL statement with placeholders for parts of an event:
//
//   INSERT INTO {orders} (id, total) VALUES (:stream, :payload.total)
//
// :position, :stream, :version, :id, :type, :time, :payload and :metadata are those parts of the
// event, and with a path the value in their JSON: a string as its text, numbers and booleans as
// written, null and missing values as NULL, objects and arrays as JSON. {name} is a table of the
// projection. Quoted text and comments are left alone; `::type` is a cast.
class SqlTemplate {
 public:
  // kInvalid: an unknown placeholder, a table not in `tables`, not exactly one statement, or one
  // that begins or ends a transaction.
  static Result<SqlTemplate> Parse(std::string_view text, const std::vector<std::string>& tables);

  // The statement for a version of the tables, with $1, $2, … as placeholders.
  std::string Sql(int version) const;

  // The placeholders' values for an event. kInvalid: a payload is not valid JSON.
  Result<std::vector<SqlValue>> Values(const events::Event& event) const;

  bool TakesEvent() const { return !places_.empty(); }

 private:
  struct Place {
    std::string part;               // "payload"
    std::vector<std::string> path;  // empty: the whole
  };
  static Result<Place> PlaceOf(const std::string& name);

  std::vector<std::string> pieces_;  // of SQL, between table names
  std::vector<std::string> tables_;  // one fewer
  std::vector<Place> places_;
};

// The name of a projection's table for one version.
std::string VersionedTable(const std::string& table, int version);

}  // namespace muster::replica
