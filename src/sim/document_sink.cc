#include "sim/document_sink.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kPause = std::chrono::milliseconds(300);
constexpr nanoseconds kFlushPatience = std::chrono::seconds(10);

}  // namespace

bool DocumentTarget::Take(const std::string& collection, const Entry& entry, int64_t version) {
  Stored& stored = indexes[collection][entry.id];
  if (stored.version > version) return false;
  stored = {.version = version, .deleted = false, .body = entry.body};
  return true;
}

std::vector<DocumentTarget::Entry> DocumentTarget::Bulk(const std::string& collection,
                                                        const pipeline::Fence& fence,
                                                        const std::vector<Entry>& entries,
                                                        bool late) {
  observer.reached(fence, late, false, entries.empty());
  std::vector<Entry> left;
  for (const Entry& entry : entries) {
    // A later version that is already there may stay.
    if (sim.Fires(Fault::kThrottle, 60)) {
      left.push_back(entry);
    } else if (!Take(collection, entry, VersionOf(fence))) {
      sim.Sometimes("76 what was read earlier meets what was read later");
    }
  }
  return left;
}

class DocumentSink::DocumentWriter final : public pipeline::Writer {
 public:
  DocumentWriter(DocumentSink& sink, std::string collection, pipeline::Fence fence)
      : sink_(sink), collection_(std::move(collection)), fence_(std::move(fence)) {}

  const std::optional<pipeline::Progress>& Known() const override { return known_; }

  Result<std::vector<pipeline::Refused>> Write(const pipeline::Batch& batch,
                                               const pipeline::Progress& /*after*/,
                                               const pipeline::Patience& patience) override {
    if (!batch.documents.empty()) sink_.target_.observer.begins(fence_);
    MaybeHang(sink_.target_.sim, patience.stop);
    std::vector<pipeline::Refused> refused;
    for (size_t i = 0; i < batch.documents.size(); ++i) {
      const pipeline::Document& document = batch.documents[i];
      if (document.id.ends_with('!') && !sink_.target_.cured) {
        refused.push_back({i, "never"});
      } else {
        pending_.push_back({std::string(document.id), std::string(document.body)});
      }
    }
    if (!sink_.buffered_) MUSTER_TRY(Send(patience));
    return refused;
  }

  Status Flush() override { return Send({.deadline = sink_.env_.MonoNow() + kFlushPatience}); }
  Status Finish() override { return Flush(); }

 private:
  Status Send(const pipeline::Patience& patience) {
    while (!pending_.empty()) {
      auto left = SendOnce();
      if (left) {
        if (left->size() < pending_.size() && !left->empty()) {
          sink_.target_.sim.Sometimes("25 a bulk request is taken in part");
        }
        pending_ = *std::move(left);
      } else if (!IsTransient(left.error().code)) {
        return left.error();
      }
      if (pending_.empty()) break;
      if (!sink_.target_.patient || sink_.env_.MonoNow() + kPause >= patience.deadline ||
          !sink_.env_.Sleep(kPause, patience.stop)) {
        return Error{Code::kUnavailable, "the sink does not take it now"};
      }
    }
    return {};
  }

  // Returns what was not accepted.
  Result<std::vector<DocumentTarget::Entry>> SendOnce() {
    DocumentTarget& target = sink_.target_;
    target.sim.Pass(target.sim.random().UpTo(sink_.pace_));
    return target.wire.Call<std::vector<DocumentTarget::Entry>>(
        "sink: bulk of " + std::to_string(pending_.size()) + " of " + fence_.item, true,
        [&target, collection = collection_, fence = fence_, entries = pending_](bool late) {
          return Result<std::vector<DocumentTarget::Entry>>(
              target.Bulk(collection, fence, entries, late));
        });
  }

  DocumentSink& sink_;
  const std::string collection_;
  const pipeline::Fence fence_;
  const std::optional<pipeline::Progress> known_;
  std::vector<DocumentTarget::Entry> pending_;
};

Result<std::vector<pipeline::TargetChange>> DocumentSink::Prepare(
    const pipeline::Collection& collection, bool /*evaluate*/) {
  return target_.wire.Call<std::vector<pipeline::TargetChange>>(
      "sink: prepare " + collection.name, false, [](bool) {
        return Result<std::vector<pipeline::TargetChange>>(std::vector<pipeline::TargetChange>());
      });
}

Result<std::unique_ptr<pipeline::Writer>> DocumentSink::Open(const std::string& collection,
                                                             const pipeline::Fence& fence) {
  return std::make_unique<DocumentWriter>(*this, collection, fence);
}

}  // namespace muster::sim
