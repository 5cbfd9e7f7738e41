#include <vector>

#include "muster/migrate.h"
#include "pipeline/file/csv_sink.h"
#include "pipeline/file/file_sink.h"
#include "pipeline/file/jsonl_sink.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/flow/shards.h"
#include "pipeline/opensearch/opensearch_sink.h"
#include "pipeline/postgres/postgres_sink.h"
#include "pipeline/sqlite/sqlite_sink.h"

namespace muster::pipeline {
namespace {

// To add a sink: a line here, and a header that declares its function.
const std::vector<SinkScheme>& Schemes() {
  static const std::vector<SinkScheme> kSchemes = {
      {"csv", "csv:FILE-OR-FOLDER", OpenCsvSink},
      {"jsonl", "jsonl:FILE-OR-FOLDER", OpenJsonlSink},
      {"opensearch+http", "opensearch+http://HOST/INDEX", OpenOpenSearchSink},
      {"opensearch+https", "opensearch+https://HOST/INDEX", OpenOpenSearchSink},
      {"postgresql", "postgresql://USER@HOST/DATABASE#TABLE", OpenPostgresSink},
      {"sqlite", "sqlite:FILE#TABLE", OpenSqliteSink},
  };
  return kSchemes;
}

}  // namespace

Result<std::unique_ptr<Sink>> OpenSink(const std::string& text, Env& env) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  std::string forms;
  for (const SinkScheme& one : Schemes()) {
    if (url.scheme == one.scheme) return one.open(url, env);
    forms += (forms.empty() ? "" : ", ") + std::string(one.form);
  }
  return Error{Code::kInvalid, "unknown sink '" + url.scheme + ":'", "use one of " + forms};
}

bool WritesFiles(const Sink& sink) { return dynamic_cast<const FileSink*>(&sink) != nullptr; }

}  // namespace muster::pipeline
