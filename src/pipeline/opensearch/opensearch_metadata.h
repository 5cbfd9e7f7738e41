#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "metadata/metadata.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

// Creates the indices and templates that documents need, adapted to the cluster's version by the
// rules of src/metadata. Thread-safe; client and environment must outlive it.
class OpenSearchMetadata {
 public:
  OpenSearchMetadata(net::OpenSearchClient& client, Env& env);
  ~OpenSearchMetadata();

  // Creates an index that does not exist; `metadata` is a Collection's. Returns what was done or,
  // with `evaluate`, would be. kInvalid: templates of the cluster would give it what the source's
  // index does not have and what would change documents; there is no index then.
  Result<std::vector<TargetChange>> CreateIndex(const std::string& name, const Json& metadata,
                                                bool evaluate);

  // The same of a data stream, with the templates that it is created by.
  Result<std::vector<TargetChange>> CreateStream(const std::string& name, const Json& metadata,
                                                 bool evaluate);

  // Logs if documents of a source's index would lose fields, be changed or be refused in this one,
  // which exists.
  Status WarnAbout(const std::string& name, const Json& metadata);

  // Creates those templates of a source's global metadata that the cluster lacks. One that the
  // cluster refuses is logged and reported: documents do not depend on it.
  Result<std::vector<TargetChange>> CreateTemplates(const Json& metadata, bool evaluate);

 private:
  struct Adapter {
    metadata::RuleSet rules;
    metadata::Target target;
  };

  Result<Adapter*> TheAdapter();
  Result<std::vector<TargetChange>> CreateTemplate(metadata::Target& target,
                                                   const metadata::Object& object,
                                                   const metadata::Verdict& verdict, bool evaluate);
  static Result<metadata::CreatedIndex> Create(Adapter& adapter, const std::string& name,
                                               const Json& metadata, const Json& body);
  Result<std::string> KeepAliasesOfThisCluster(const Json& metadata, Json& index);

  net::OpenSearchClient& client_;
  Env& env_;
  Mutex mutex_;
  std::unique_ptr<Adapter> adapter_ GUARDED_BY(mutex_);
};

}  // namespace muster::pipeline
