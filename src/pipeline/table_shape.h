#pragma once

#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// The table that a collection fits into, with types as PostgreSQL names them.
struct TableShape {
  struct Column {
    std::string name;
    std::string type;
    bool nullable = true;
  };
  std::vector<Column> columns;
  std::vector<std::string> key;
};

// From what the source knows of the collection:
// - a table's columns and key, as they are; a type that is not a plain type's name is text;
// - an index's mappings: `_id` and a column for every field: numbers, booleans, dates and addresses
//   as such, texts as text, anything nested as jsonb;
// - else, or with `documents`, a table of whole documents: id, routing if there can be one, and
//   document.
// kInvalid: the metadata cannot be read.
Result<TableShape> ShapeOf(const Collection& collection, bool documents);

// Metadata that ShapeOf reads as this shape.
std::string MetadataOf(const TableShape& shape);

// kIncompatible: documents cannot be deleted from a table that does not have their ids.
Error NoIdColumn(const std::string& table);

// What sinks of tables prefer: each batch is a transaction with a few round trips of its own.
inline constexpr BatchLimits kTableLimits{.max_docs = 10'000};

}  // namespace muster
