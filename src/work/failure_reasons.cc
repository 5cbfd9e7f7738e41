#include "work/failure_reasons.h"

#include <algorithm>
#include <utility>

#include "core/record_fields.h"
#include "core/signature.h"
#include "core/utf8.h"

namespace muster::work {
namespace {

constexpr char kOther[] = "other";
constexpr size_t kMaxId = 100;
constexpr size_t kMaxMessage = 300;

constexpr RecordFields<FailureReason, 4> kReasonFields{
    {Required<FailureReason, &FailureReason::reason>("reason"),
     Required<FailureReason, &FailureReason::count>("count"),
     Always<FailureReason, &FailureReason::id>("id"),
     Always<FailureReason, &FailureReason::message>("message")}};

// On one line, and without control characters: it comes from documents and is shown on terminals.
std::string Flat(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

void Merge(FailureReason reason, FailureReason& into) {
  const int64_t count = into.count + reason.count;
  if (into.count == 0) into = std::move(reason);
  into.count = count;
}

}  // namespace

void FailureReasons::Add(std::string_view id, std::string_view message) {
  Add(FailureReason{.reason = Flat(SignatureOf(message)),
                    .count = 1,
                    .id = Flat(Shortened(id, kMaxId)),
                    .message = Flat(Shortened(message, kMaxMessage))});
}

void FailureReasons::Add(const FailureReason& reason) {
  if (reason.reason == kOther || (groups_.size() >= most_ && !groups_.contains(reason.reason))) {
    return AddOther(reason);
  }
  total_ += reason.count;
  Merge(reason, groups_[reason.reason]);
}

void FailureReasons::AddOther(FailureReason reason) {
  total_ += reason.count;
  reason.reason = kOther;
  Merge(std::move(reason), other_);
}

std::vector<FailureReason> FailureReasons::List() const {
  std::vector<FailureReason> list;
  for (const auto& [reason, group] : groups_) list.push_back(group);
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  FailureReason other = other_;
  for (; list.size() > kMaxListed; list.pop_back()) {
    FailureReason rare = std::move(list.back());
    rare.reason = kOther;
    Merge(std::move(rare), other);
  }
  if (other.count > 0) list.push_back(std::move(other));
  return list;
}

Json FailureReasons::ToJson() const {
  Json json = Json::array();
  for (const FailureReason& reason : List()) json.push_back(ReasonJson(reason));
  return json;
}

FailureReasons FailureReasons::Read(const Json& json, JsonFields& fields) {
  FailureReasons reasons;
  if (json.is_null()) return reasons;
  if (!json.is_array()) {
    fields.Mistake("its reasons are damaged");
    return reasons;
  }
  for (const Json& one : json) reasons.Add(ReadReason(one, fields));
  return reasons;
}

Json ReasonJson(const FailureReason& reason) { return Nested<kReasonFields>::Write(reason); }

FailureReason ReadReason(const Json& json, JsonFields& fields) {
  FailureReason reason;
  JsonFields one(json);
  ReadMembers(kReasonFields, one, reason);
  if (!one.good() || reason.count < 0) fields.Mistake("its reasons are damaged");
  return reason;
}

}  // namespace muster::work
