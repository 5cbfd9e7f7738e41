#include <vector>

#include "muster/migrate.h"
#include "pipeline/file/csv_source.h"
#include "pipeline/file/jsonl_source.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/opensearch/opensearch_source.h"
#include "pipeline/postgres/postgres_source.h"
#include "pipeline/salesforce/salesforce_source.h"
#include "pipeline/snapshot/snapshot_source.h"
#include "pipeline/sqlite/sqlite_source.h"

namespace muster::pipeline {
namespace {

// To add a source: a line here, and a header that declares its function.
const std::vector<SourceScheme>& Schemes() {
  static const std::vector<SourceScheme> kSchemes = {
      {"csv", "csv:FILE-OR-FOLDER", OpenCsvSource},
      {"jsonl", "jsonl:FILE-OR-FOLDER", OpenJsonlSource},
      {"opensearch+http", "opensearch+http://HOST/INDEX-PATTERN", OpenOpenSearchSource},
      {"opensearch+https", "opensearch+https://HOST/INDEX-PATTERN", OpenOpenSearchSource},
      {"postgresql", "postgresql://USER@HOST/DATABASE#TABLE", OpenPostgresSource},
      {"salesforce+http", "salesforce+http://HOST/OBJECT", OpenSalesforceSource},
      {"salesforce+https", "salesforce+https://HOST/OBJECT", OpenSalesforceSource},
      {"snapshot+file", "snapshot+file:///FOLDER", OpenSnapshotSource},
      {"snapshot+s3", "snapshot+s3://BUCKET/PREFIX", OpenSnapshotSource},
      {"sqlite", "sqlite:FILE#TABLE", OpenSqliteSource},
  };
  return kSchemes;
}

}  // namespace

// For sources that list all collections at once; others override it.
Result<std::optional<Collection>> Source::Describe(const std::string& collection) {
  MUSTER_ASSIGN(std::vector<Collection> all, Collections());
  for (Collection& one : all) {
    if (one.name == collection) return std::optional<Collection>(std::move(one));
  }
  return std::optional<Collection>();
}

// For sinks that keep names as they are, and for sources that are not sinks.
Result<std::optional<std::string>> Source::TargetOf(const std::string& collection) {
  MUSTER_ASSIGN(const std::optional<Collection> there, Describe(collection));
  if (!there) return std::optional<std::string>();
  return std::optional<std::string>(there->name);
}

Result<std::unique_ptr<Source>> OpenSource(const std::string& text, Env& env) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  std::string forms;
  for (const SourceScheme& one : Schemes()) {
    if (url.scheme == one.scheme) return one.open(url, env);
    forms += (forms.empty() ? "" : ", ") + std::string(one.form);
  }
  return Error{Code::kInvalid, "unknown source '" + url.scheme + ":'", "use one of " + forms};
}

}  // namespace muster::pipeline
