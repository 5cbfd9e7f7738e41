#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/events.h"
#include "muster/replica.h"
#include "muster/result.h"

namespace muster {

// An SQL statement with places for parts of an event:
//
//   INSERT INTO {orders} (id, total) VALUES (:stream, :payload.total)
//
// :position, :stream, :version, :id, :type, :time, :payload and :metadata stand for those parts of
// the event, and with a path for what lies there in their JSON: a string as its text, numbers and
// booleans as written, null and what is missing as NULL, objects and arrays as JSON. {name} stands
// for a table of the projection. Nothing is looked for within quotes and comments; `::type` is a
// cast.
class SqlTemplate {
 public:
  // kInvalid: a place that is none of these, a table that is not in `tables`, not exactly one
  // statement, or one that begins or ends a transaction.
  static Result<SqlTemplate> Parse(std::string_view text, const std::vector<std::string>& tables);

  // The statement for a version of the tables, with $1, $2, … for the places.
  std::string Sql(int version) const;

  // What stands in the places for an event. kInvalid: a payload is not the JSON it has to be.
  Result<std::vector<SqlValue>> Values(const Event& event) const;

  bool TakesEvent() const { return !places_.empty(); }

 private:
  struct Place {
    std::string part;               // "payload"
    std::vector<std::string> path;  // empty: all of it
  };

  std::vector<std::string> pieces_;  // of SQL, between table names
  std::vector<std::string> tables_;  // one fewer
  std::vector<Place> places_;
};

// The name of a projection's table in one version.
std::string VersionedTable(const std::string& table, int version);

}  // namespace muster
