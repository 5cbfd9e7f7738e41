#pragma once

#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// The table that fits a collection, with PostgreSQL's type names.
struct TableShape {
  struct Column {
    std::string name;
    std::string type;
    bool nullable = true;
  };
  std::vector<Column> columns;
  std::vector<std::string> key;
};

// Derived from the source's metadata:
// - a table's columns and key, unchanged; a type that is not a plain type name becomes text;
// - an index's mappings: `_id` and a column per field: numbers, booleans, dates and addresses as
//   such, texts as text, anything nested as jsonb;
// - otherwise, or with `documents`, a table of whole documents: id, routing if possible, document.
// kInvalid: the metadata cannot be parsed.
Result<TableShape> ShapeOf(const Collection& collection, bool documents);

// Metadata that ShapeOf maps to this shape.
std::string MetadataOf(const TableShape& shape);

// kIncompatible: documents cannot be deleted from a table without their ids.
Error NoIdColumn(const std::string& table);

// Preferred by table sinks: each batch is a transaction with a few round trips.
inline constexpr BatchLimits kTableLimits{.max_docs = 10'000};

}  // namespace muster::pipeline
