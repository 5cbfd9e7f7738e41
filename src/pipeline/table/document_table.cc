#include "pipeline/table/document_table.h"

namespace muster::pipeline {
namespace {

bool IsText(const sql::PgTable::Column& column) {
  return column.base == "text" || column.base == "varchar";
}

}  // namespace

bool HoldsDocuments(const sql::PgTable& table) {
  const sql::PgTable::Column* id = table.Find("id");
  const sql::PgTable::Column* routing = table.Find("routing");
  const sql::PgTable::Column* document = table.Find("document");
  return id != nullptr && IsText(*id) && document != nullptr &&
         (document->base == "json" || document->base == "jsonb") &&
         table.columns.size() == (routing != nullptr && IsText(*routing) ? 3 : 2);
}

bool HoldsDocuments(const sql::SqliteTable& table) {
  const sql::SqliteTable::Column* id = table.Find("id");
  const sql::SqliteTable::Column* routing = table.Find("routing");
  const sql::SqliteTable::Column* document = table.Find("document");
  return id != nullptr && id->form == sql::SqliteTable::Form::kText && document != nullptr &&
         document->form == sql::SqliteTable::Form::kJson &&
         table.columns.size() ==
             (routing != nullptr && routing->form == sql::SqliteTable::Form::kText ? 3 : 2);
}

}  // namespace muster::pipeline
