#include "store/diagnose_backends.h"
#include "store/opensearch_schema.h"

namespace muster {

bool DiagnoseOpenSearch(const StoreUrl& url, Env& env, Findings& findings) {
  OpenSearchClient client(url.opensearch, env);
  auto server = ReadOpenSearchServer(client);
  if (!server) {
    findings.Fail("connect", server.error());
    return false;
  }
  return true;
}

}  // namespace muster
