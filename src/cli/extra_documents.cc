#include "cli/extra_documents.h"

#include <utility>

#include "muster/migrate.h"

namespace muster::cli {

Result<std::unique_ptr<ExtraDocuments>> ExtraDocuments::Open(const std::string& sink, Env& env) {
  MUSTER_ASSIGN(auto opened, pipeline::OpenSink(sink, env));
  if (opened->CanDelete()) {
    return std::unique_ptr<ExtraDocuments>(new ExtraDocuments(std::move(opened)));
  }
  return Error{Code::kIncompatible, "--delete-extra: this sink cannot delete documents",
               "search clusters can, and tables of SQLite and PostgreSQL with the documents' ids"};
}

Status ExtraDocuments::Delete(const std::string& collection, const pipeline::Batch& documents,
                              const std::stop_token& stop) {
  pipeline::Fence fence;
  fence.run = "verify";
  fence.item = "extra";
  fence.alone = true;
  MUSTER_ASSIGN(const auto writer, sink_->Open(collection, fence));
  pipeline::Progress after;
  after.counts.read = after.counts.written = static_cast<int64_t>(documents.documents.size());
  MUSTER_ASSIGN(const auto refused, writer->Write(documents, after, {.stop = stop}));
  MUSTER_TRY(writer->Finish());
  if (refused.empty()) return {};
  const pipeline::Refused& first = refused.front();
  return Error{Code::kConflict, collection + ": " + std::to_string(refused.size()) +
                                    " extra documents cannot be deleted, the first of them is " +
                                    std::string(documents.documents.at(first.index).id) + ": " +
                                    first.reason};
}

}  // namespace muster::cli
