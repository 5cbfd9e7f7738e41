#include <vector>

#include "muster/migrate.h"
#include "pipeline/csv_sink.h"
#include "pipeline/jsonl_sink.h"
#include "pipeline/opensearch_sink.h"
#include "pipeline/scheme.h"

namespace muster {
namespace {

// A sink is added by a line here, and a header of its own that declares its function.
const std::vector<SinkScheme>& Schemes() {
  static const std::vector<SinkScheme> schemes = {
      {"csv", "csv:FILE-OR-FOLDER", OpenCsvSink},
      {"jsonl", "jsonl:FILE-OR-FOLDER", OpenJsonlSink},
      {"opensearch+https", "opensearch+https://HOST/INDEX", OpenOpenSearchSink},
      {"opensearch+http", "opensearch+http://HOST/INDEX", OpenOpenSearchSink},
  };
  return schemes;
}

}  // namespace

Result<std::unique_ptr<Sink>> OpenSink(const std::string& text, Env& env) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  std::string forms;
  for (const SinkScheme& one : Schemes()) {
    if (url.scheme == one.scheme) return one.open(url, env);
    forms += (forms.empty() ? "" : ", ") + std::string(one.form);
  }
  return Error{Code::kInvalid, "there is no sink '" + url.scheme + ":'", "use one of " + forms};
}

}  // namespace muster
