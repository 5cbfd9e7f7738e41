#include "pipeline/table/table_writer.h"

#include <algorithm>

#include "core/log.h"

namespace muster::pipeline {

Status TableWriter::Record(const Batch& batch, const std::vector<Refused>& refused) {
  if (!record_) return {};
  for (const Refused& one : refused) {
    const bool done = std::find(recorded_.begin(), recorded_.end(), one.index) != recorded_.end();
    if (one.skipped || done) continue;
    MUSTER_TRY(record_(batch.documents[one.index], one.reason));
    recorded_.push_back(one.index);
  }
  return {};
}

void TableWriter::WarnOfTwoVersions(const Fence& fence, const std::string& table) {
  if (!ReplacesRows(fence) || std::exchange(warned_, true)) return;
  Log(Level::kWarning, "the table has no key: documents that are written again occur twice",
      {{"table", table}, {"item", fence.item}});
}

}  // namespace muster::pipeline
