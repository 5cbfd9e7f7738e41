#include <utility>

#include "core/record_fields.h"
#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {
namespace {

Error NoProgress(std::string_view what) {
  return {Code::kCorrupt, "stored progress cannot be read: " + std::string(what)};
}

template <int64_t Counts::*kCount>
constexpr auto kOf = [](auto& progress) -> auto& { return progress.counts.*kCount; };

constexpr RecordFields<Progress, 9> kFields{{
    Required<Progress, &Progress::position, Escaped>("position"),
    Required<Progress, &Progress::end, Escaped>("end"),
    Required<Progress, kOf<&Counts::read>>("read"),
    Required<Progress, kOf<&Counts::written>>("written"),
    Required<Progress, kOf<&Counts::skipped>>("skipped"),
    Required<Progress, kOf<&Counts::failed>>("failed"),
    Required<Progress, kOf<&Counts::bytes>>("bytes"),
    Field<Progress, kOf<&Counts::added>>("added"),
    Field<Progress, &Progress::former_ends, Escaped>("former_ends"),
}};

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  read += other.read;
  written += other.written;
  skipped += other.skipped;
  failed += other.failed;
  bytes += other.bytes;
  added += other.added;
  return *this;
}

Progress Progress::CutAt(const std::string& new_end) const {
  Progress cut = *this;
  cut.former_ends.push_back(std::exchange(cut.end, new_end));
  return cut;
}

Json JsonOf(const Progress& progress) { return Nested<kFields>::Write(progress); }

Result<Progress> ProgressOf(const Json& json) {
  Progress progress;
  JsonFields fields(json);
  ReadMembers(kFields, fields, progress);
  if (!fields.good()) return NoProgress(fields.mistake());
  return progress;
}

std::string Progress::ToString() const { return ToJsonText(JsonOf(*this)); }

Result<Progress> Progress::Parse(std::string_view text) {
  MUSTER_ASSIGN(const Json json, ParseJson(text, "progress"));
  return ProgressOf(json);
}

}  // namespace muster::pipeline
