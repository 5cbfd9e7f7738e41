#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::cli {

// Deletes documents from a sink that its source does not have.
class ExtraDocuments {
 public:
  // kIncompatible: the sink cannot delete documents.
  static Result<std::unique_ptr<ExtraDocuments>> Open(const std::string& sink, Env& env);

  // From a collection of the sink. A document that is not there is no error.
  Status Delete(const std::string& collection, const pipeline::Batch& documents,
                const std::stop_token& stop);

 private:
  explicit ExtraDocuments(std::unique_ptr<pipeline::Sink> sink) : sink_(std::move(sink)) {}

  const std::unique_ptr<pipeline::Sink> sink_;
};

}  // namespace muster::cli
