#pragma once

#include <string>
#include <vector>

#include "muster/result.h"

namespace muster::change {

// A table into which an application inserts its events, in the transaction that they belong to. The
// columns are those of Debezium's outbox unless others are named.
struct Outbox {
  std::string table;
  std::string id = "id";
  std::vector<std::string> stream = {"aggregatetype", "aggregateid"};  // joined by '/'
  std::string type = "type";
  std::string payload = "payload";
  std::string metadata = {};  // empty: none
};

// TABLE or TABLE?id=COLUMN&stream=COLUMN,COLUMN&type=COLUMN&payload=COLUMN&metadata=COLUMN
Result<Outbox> ParseOutbox(const std::string& text);

}  // namespace muster::change
