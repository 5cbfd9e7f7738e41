#include "sim/table_sink.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kPause = std::chrono::milliseconds(300);
constexpr nanoseconds kOpenPatience = std::chrono::seconds(20);

bool SameHolder(const pipeline::Fence& a, const pipeline::Fence& b) {
  return a.incarnation == b.incarnation && a.epoch == b.epoch && a.holder == b.holder;
}

}  // namespace

class TableSink::TableWriter final : public pipeline::Writer {
 public:
  TableWriter(TableSink& sink, std::string collection, pipeline::Fence fence,
              const TableTarget::Item& item)
      : sink_(sink),
        collection_(std::move(collection)),
        fence_(std::move(fence)),
        known_(item.progress),
        sealed_(item.sealed) {}

  const std::optional<pipeline::Progress>& Known() const override { return known_; }
  bool Sealed() const override { return sealed_; }
  bool RecordsRefusals(RefusalRecorder record) override {
    record_ = std::move(record);
    return true;
  }

  Result<std::vector<pipeline::Refused>> Write(const pipeline::Batch& batch,
                                               const pipeline::Progress& after,
                                               const pipeline::Patience& patience) override {
    if (!batch.documents.empty()) sink_.target_.observer.begins(fence_);
    MaybeHang(sink_.target_.sim, patience.stop);
    std::vector<std::string> ids;
    std::vector<pipeline::Refused> refused;
    pipeline::Progress counted = after;
    for (size_t i = 0; i < batch.documents.size(); ++i) {
      if (batch.documents[i].id.ends_with('!') && !sink_.target_.cured) {
        MUSTER_TRY(record_(batch.documents[i], "never"));
        refused.push_back({i, "never"});
        --counted.counts.written;
        ++counted.counts.failed;
      } else {
        ids.emplace_back(batch.documents[i].id);
      }
    }
    for (bool again = false;; again = true) {
      auto stored = Send(ids, counted);
      if (stored && *stored == counted) {
        known_ = counted;
        if (again) sink_.target_.sim.Sometimes("21 the connection is lost during COMMIT");
        return refused;
      }
      // Another process has written with our fence, which must never happen.
      if (stored) return Error{Code::kInternal, "the progress is not ours"};
      if (!IsTransient(stored.error().code)) return stored.error();
      if (!sink_.target_.patient || sink_.env_.MonoNow() + kPause >= patience.deadline ||
          !sink_.env_.Sleep(kPause, patience.stop)) {
        return stored.error();
      }
    }
  }

  Result<std::optional<pipeline::Progress>> Seal() override {
    TableTarget& target = sink_.target_;
    return target.wire.Call<std::optional<pipeline::Progress>>(
        "sink: seal " + fence_.item, true,
        [&target, fence = fence_](bool late) { return target.Seal(fence, late); });
  }

 private:
  // One transaction. Returns the sink's progress now.
  Result<std::optional<pipeline::Progress>> Send(const std::vector<std::string>& ids,
                                                 const pipeline::Progress& after) {
    TableTarget& target = sink_.target_;
    target.sim.Pass(target.sim.random().UpTo(sink_.pace_));
    return target.wire.Call<std::optional<pipeline::Progress>>(
        "sink: " + std::to_string(ids.size()) + " rows of " + fence_.item + " up to '" +
            after.position + "' of '" + after.end + "', epoch " + std::to_string(fence_.epoch),
        true,
        [&target, collection = collection_, fence = fence_, ids, before = known_,
         after](bool late) { return target.Append(collection, fence, ids, before, after, late); });
  }

  TableSink& sink_;
  const std::string collection_;
  const pipeline::Fence fence_;
  std::optional<pipeline::Progress> known_;
  const bool sealed_;
  RefusalRecorder record_;
};

Status TableTarget::Admit(const pipeline::Fence& fence, bool late, bool empty) {
  const Item& item = items[fence.item];
  const bool refused = !item.opened || !SameHolder(item.fence, fence);
  observer.reached(fence, late, refused, empty);
  if (refused) return Error{Code::kLeaseLost, "a later holder has opened " + fence.item};
  return {};
}

Result<TableTarget::Item> TableTarget::Open(const pipeline::Fence& fence) {
  Item& item = items[fence.item];
  if (item.opened && item.fence.incarnation != fence.incarnation) {
    if (!fence.adopts) return Error{Code::kConflict, "written by another incarnation"};
  } else if (item.opened) {
    const bool older = fence.epoch < item.fence.epoch;
    const bool twice = fence.epoch == item.fence.epoch && fence.holder != item.fence.holder;
    if (older || twice) return Error{Code::kLeaseLost, "a later holder has opened it"};
  }
  item.opened = true;
  item.fence = fence;
  return item;
}

Result<std::optional<pipeline::Progress>> TableTarget::Append(
    const std::string& collection, const pipeline::Fence& fence,
    const std::vector<std::string>& ids, const std::optional<pipeline::Progress>& before,
    const pipeline::Progress& after, bool late) {
  MUSTER_TRY(Admit(fence, late, ids.empty()));
  Item& item = items[fence.item];
  if (item.sealed) return Error{Code::kLeaseLost, "sealed"};
  if (item.progress == before) {
    rows[collection].insert(rows[collection].end(), ids.begin(), ids.end());
    item.progress = after;
  }
  return item.progress;
}

Result<std::optional<pipeline::Progress>> TableTarget::Seal(const pipeline::Fence& fence,
                                                            bool late) {
  MUSTER_TRY(Admit(fence, late, true));
  items[fence.item].sealed = true;
  return items[fence.item].progress;
}

Result<std::vector<pipeline::TargetChange>> TableSink::Prepare(
    const pipeline::Collection& collection, bool /*evaluate*/) {
  return target_.wire.Call<std::vector<pipeline::TargetChange>>(
      "sink: prepare " + collection.name, false, [](bool) {
        return Result<std::vector<pipeline::TargetChange>>(std::vector<pipeline::TargetChange>());
      });
}

Result<std::unique_ptr<pipeline::Writer>> TableSink::Open(const std::string& collection,
                                                          const pipeline::Fence& fence) {
  const MonoTime deadline = env_.MonoNow() + kOpenPatience;
  for (;;) {
    auto item = target_.wire.Call<TableTarget::Item>(
        "sink: open " + fence.item + ", epoch " + std::to_string(fence.epoch), true,
        [&target = target_, fence](bool) { return target.Open(fence); });
    if (item) return std::make_unique<TableWriter>(*this, collection, fence, *item);
    if (!IsTransient(item.error().code)) return item.error();
    if (!target_.patient || env_.MonoNow() + kPause >= deadline || !env_.Sleep(kPause, {}))
      return item.error();
  }
}

}  // namespace muster::sim
