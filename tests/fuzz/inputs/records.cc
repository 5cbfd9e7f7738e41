#include "work/records.h"
#include "fuzz/inputs/inputs.h"
#include "muster/store.h"
#include "pipeline/file/file_sink_state.h"
#include "pipeline/flow/shards.h"
#include "plan/run/run_body.h"
#include "replica/set_records.h"
#include "states/durable/flow_record.h"
#include "work/item_body.h"

namespace muster::fuzz {
namespace {

// A record that can be read is unchanged after a round trip.
template <class Body>
void RoundTrip(const std::string& text) {
  const auto body = Body::FromJson(text);
  if (!body) return;
  const std::string written = body->ToJson();
  const auto again = Body::FromJson(written);
  if (!again || again->ToJson() != written) __builtin_trap();
}

template <class Body>
void RoundTripText(const std::string& text) {
  const auto body = Body::Parse(text);
  if (!body) return;
  const std::string written = body->ToString();
  const auto again = Body::Parse(written);
  if (!again || again->ToString() != written) __builtin_trap();
}

template <class Body>
void RoundTripBody(const std::string& text) {
  const auto body = Body::FromBody(text);
  if (!body) return;
  const std::string written = body->ToBody();
  const auto again = Body::FromBody(written);
  if (!again || again->ToBody() != written) __builtin_trap();
}

void ReadWork(std::string_view bytes) {
  const size_t kind = TakeChoice(bytes, 11);
  const std::string text(bytes);
  if (kind == 0) {
    RoundTrip<work::ItemBody>(text);
    if (const auto item = work::ItemBody::FromJson(text)) {
      static_cast<void>(item->Successors());
      static_cast<void>(item->Left());
    }
  }
  if (kind == 1) RoundTrip<work::RunBody>(text);
  if (kind == 2) RoundTrip<work::PageBody>(text);
  if (kind == 3) RoundTrip<work::RedriveBody>(text);
  if (kind == 4) RoundTrip<work::PrepareBody>(text);
  if (kind == 5) RoundTripText<pipeline::Progress>(text);
  if (kind == 6) RoundTrip<work::TargetBody>(text);
  if (kind == 7) RoundTrip<work::EndBody>(text);
  if (kind == 8) RoundTrip<work::SplitRequestBody>(text);
  if (kind == 9) RoundTrip<work::RedrivePageBody>(text);
  if (kind == 10) RoundTrip<work::BudgetBody>(text);
}

void ReadSetRecords(std::string_view bytes) {
  const size_t kind = TakeChoice(bytes, 4);
  const std::string text(bytes);
  if (kind == 0) RoundTripBody<replica::Generation>(text);
  if (kind == 1) RoundTripBody<replica::MemberState>(text);
  if (kind == 2) RoundTripBody<replica::DesiredState>(text);
  if (kind == 3) RoundTripBody<replica::Suspect>(text);
}

void ReadRun(std::string_view bytes) {
  const store::Record record{.kind = "plan.run", .key = "run", .body = std::string(bytes)};
  static_cast<void>(plan::ReadRunBody(record));
  static_cast<void>(plan::DoneOf(record));
  static_cast<void>(plan::CancelMachineOf(record));
  static_cast<void>(plan::PinnedPlan(record));
}

void ReadFlow(std::string_view bytes) {
  static const std::unique_ptr<store::Store> kStore = *store::OpenStore("memory:", RealEnv());
  const states::FlowCodec codec(*kStore);
  static_cast<void>(states::SaysRunning(bytes));
  auto record =
      codec.Decode(store::Record{.kind = "states", .key = "e", .body = std::string(bytes)});
  if (!record) return;
  static_cast<void>(codec.LoadEvents(*record));
  static_cast<void>(codec.Encode(*record));
}

void ReadNames(std::string_view bytes) {
  const auto name = pipeline::WorkItemName::Parse(bytes);
  if (name && *pipeline::WorkItemName::Parse(name->ToString()) != *name) __builtin_trap();
  const auto item = pipeline::FileItem::FromJson(bytes, "state.json");
  if (item) static_cast<void>(item->ToJson());
}

constexpr Input kInputs[] = {{"work", ReadWork},
                             {"set_records", ReadSetRecords},
                             {"run", ReadRun},
                             {"flow", ReadFlow},
                             {"names", ReadNames}};

}  // namespace

std::span<const Input> RecordInputs() { return kInputs; }

}  // namespace muster::fuzz
