#include "core/planted_bug.h"
#include "pipeline/flow/batch_reader.h"
#include "pipeline/flow/shards.h"

namespace muster::pipeline {
namespace {

Error Stopped() { return {Code::kCancelled, "stopped on request"}; }

// Migrates one shard, batch by batch.
class ShardRun {
 public:
  ShardRun(Pipeline& pipeline, const Partition& partition, const std::string& item,
           const Progress& start, Writer& writer, WorkItemCursor& cursor, std::stop_token stop)
      : pipeline_(pipeline),
        partition_(partition),
        item_(item),
        target_(pipeline.transforms.TargetName(partition.collection)),
        writer_(writer),
        cursor_(cursor),
        stop_(std::move(stop)),
        progress_(start) {
    if (progress_.end.empty()) progress_.end = partition.end;
    partition_.end = progress_.end;
    sink_records_ = writer_.RecordsRefusals([this](const Document& document, std::string_view why) {
      return RecordNow(document, why);
    });
  }

  Result<Progress> Run() {
    std::stop_source reading;
    const std::stop_callback pass_on(stop_, [&reading] { reading.request_stop(); });
    MUSTER_ASSIGN(auto reader,
                  By(Party::kSource,
                     pipeline_.source.Read(partition_, progress_.position, reading.get_token())));
    BatchReader batches(pipeline_, partition_.collection, std::move(reader), reading);
    for (;;) {
      Result<const ReadBatch*> batch = batches.Next();
      if (stop_.stop_requested()) return Stopped();
      if (!batch) return batch.error().By(Party::kSource);
      if (*batch == nullptr) return progress_;
      if (Status written = Write(**batch); !written) {
        if (PLANTED_BUG(watermark_by_completion_order) && IsTransient(written.error().code)) {
          continue;
        }
        return std::move(written).error();
      }
      MUSTER_TRY(cursor_.Advance(progress_, writer_, batches));
    }
  }

 private:
  Status Write(const ReadBatch& batch) {
    const auto documents = static_cast<int64_t>(batch.batch.documents.size());
    if (!pipeline_.throttle.Pass(documents, static_cast<int64_t>(batch.kept_bytes), stop_)) {
      return Stopped();
    }
    // Before the sink can store progress that counts them.
    for (const ReadBatch::Failed& failed : batch.failed) {
      MUSTER_TRY(AddLetter(failed.document, failed.reason, !pipeline_.transforms.EditsDocuments()));
    }
    if (!batch.failed.empty()) MUSTER_TRY(pipeline_.dead_letters.Flush());

    Progress after = progress_;
    after.position = batch.position;
    after.counts += {.read = batch.read,
                     .written = documents,
                     .skipped = batch.skipped,
                     .failed = static_cast<int64_t>(batch.failed.size()),
                     .bytes = batch.bytes,
                     .added = batch.added};
    const auto written = writer_.Write(batch.batch, after, cursor_.NextPatience());
    if (!written) return written.error().By(Party::kSink);
    for (const ReadBatch::Failed& failed : batch.failed) {
      cursor_.Failed(failed.document, failed.reason);
    }
    const std::vector<Refused>& refused = *written;
    for (const Refused& one : refused) {
      if (one.skipped) {
        --after.counts.written;
        ++after.counts.skipped;
        continue;
      }
      if (!sink_records_) {
        MUSTER_TRY(AddLetter(batch.batch.documents.at(one.index), one.reason, true));
      }
      cursor_.Failed(batch.batch.documents.at(one.index), one.reason);
      --after.counts.written;
      ++after.counts.failed;
    }
    progress_ = std::move(after);
    return {};
  }

  Status RecordNow(const Document& document, std::string_view reason) {
    Status recorded = AddLetter(document, reason, true);
    if (recorded) recorded = pipeline_.dead_letters.Flush();
    // The sink passes it on, but it is not the sink's own failure.
    return By(Party::kDeadLetters, std::move(recorded));
  }

  // One that failed before it was transformed has chosen no target.
  Status AddLetter(const Document& document, std::string_view reason, bool transformed) {
    const std::string_view target = document.target.empty() ? target_ : document.target;
    return pipeline_.dead_letters.Add({.collection = partition_.collection,
                                       .target = target,
                                       .item = item_,
                                       .document = document,
                                       .reason = reason,
                                       .transformed = transformed});
  }

  Pipeline& pipeline_;
  Partition partition_;
  const std::string& item_;
  const std::string target_;
  Writer& writer_;
  WorkItemCursor& cursor_;
  const std::stop_token stop_;
  Progress progress_;
  bool sink_records_ = false;
};

}  // namespace

Result<Progress> MigrateShard(Pipeline& pipeline, const Partition& partition,
                              const std::string& item, const Progress& start, Writer& writer,
                              WorkItemCursor& cursor, std::stop_token stop) {
  return ShardRun(pipeline, partition, item, start, writer, cursor, std::move(stop)).Run();
}

}  // namespace muster::pipeline
