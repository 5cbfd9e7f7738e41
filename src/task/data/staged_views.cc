#include "task/data/staged_views.h"

namespace muster::task {

Result<std::unique_ptr<sql::DuckDb>> OpenStagedDuckDb(const Staging& staging) {
  return sql::DuckDb::Open(
      {.spill_folder = staging.folder() + "/spill", .folders = {staging.folder()}});
}

std::string StagedRowsSql(const std::string& path, const std::string& format,
                          const std::vector<std::pair<std::string, std::string>>& columns) {
  if (columns.empty()) return "(SELECT NULL::VARCHAR AS _empty WHERE false)";
  if (format == "parquet") return "read_parquet(" + sql::DuckLiteral(path) + ")";
  std::string types;
  for (const auto& [name, type] : columns) {
    types +=
        (types.empty() ? "" : ", ") + sql::DuckIdentifier(name) + ": " + sql::DuckLiteral(type);
  }
  // As large as the pipeline's largest document.
  return "read_json(" + sql::DuckLiteral(path) + ", format = 'newline_delimited', columns = {" +
         types + "}, maximum_object_size = 33554432)";
}

Status MakeStagedViews(sql::DuckDb& db, const Staging& staging,
                       const std::vector<Manifest>& objects) {
  for (const Manifest& one : objects) {
    MUSTER_TRY(staging.Bring(one));
    const std::string path = staging.folder() + "/" + one.file;
    const Status made =
        db.Execute("CREATE VIEW " + sql::DuckIdentifier(one.object) + " AS SELECT * FROM " +
                   StagedRowsSql(path, one.format, one.columns));
    if (!made) return made.error().Within("staged object " + one.object);
  }
  return {};
}

}  // namespace muster::task
