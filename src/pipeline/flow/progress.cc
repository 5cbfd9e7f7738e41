#include <utility>

#include "core/escape_bytes.h"
#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {
namespace {

Error NoProgress(std::string_view what) {
  return {Code::kCorrupt, "stored progress cannot be read: " + std::string(what)};
}

Result<std::string> PositionIn(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return NoProgress(std::string("no ") + name);
  auto position = UnescapeBytes(found->get_ref<const std::string&>());
  if (!position) return NoProgress(std::string(name) + " is damaged");
  return *std::move(position);
}

Result<int64_t> CountIn(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) {
    return NoProgress(std::string("no ") + name);
  }
  return found->get<int64_t>();
}

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

Json JsonOf(const Progress& progress) {
  const Counts& counts = progress.counts;
  Json json{{"position", EscapeBytes(progress.position)},
            {"end", EscapeBytes(progress.end)},
            {"read", counts.read},
            {"written", counts.written},
            {"skipped", counts.skipped},
            {"failed", counts.failed},
            {"bytes", counts.bytes}};
  if (counts.added != 0) json["added"] = counts.added;
  for (const std::string& former : progress.former_ends) {
    json["former_ends"].push_back(EscapeBytes(former));
  }
  return json;
}

Result<Progress> ProgressOf(const Json& json) {
  if (!json.is_object()) return NoProgress("no object");
  Progress progress;
  MUSTER_ASSIGN(progress.position, PositionIn(json, "position"));
  MUSTER_ASSIGN(progress.end, PositionIn(json, "end"));
  MUSTER_ASSIGN(progress.counts.read, CountIn(json, "read"));
  MUSTER_ASSIGN(progress.counts.written, CountIn(json, "written"));
  MUSTER_ASSIGN(progress.counts.skipped, CountIn(json, "skipped"));
  MUSTER_ASSIGN(progress.counts.failed, CountIn(json, "failed"));
  MUSTER_ASSIGN(progress.counts.bytes, CountIn(json, "bytes"));
  if (json.contains("added")) {
    MUSTER_ASSIGN(progress.counts.added, CountIn(json, "added"));
  }
  if (const auto found = json.find("former_ends"); found != json.end()) {
    for (const Json& former : *found) {
      auto end =
          former.is_string() ? UnescapeBytes(former.get_ref<const std::string&>()) : std::nullopt;
      if (!end) return NoProgress("former_ends are damaged");
      progress.former_ends.push_back(*std::move(end));
    }
  }
  return progress;
}

std::string Progress::ToString() const { return ToJsonText(JsonOf(*this)); }

Result<Progress> Progress::Parse(std::string_view text) {
  MUSTER_ASSIGN(const Json json, ParseJson(text, "progress"));
  return ProgressOf(json);
}

}  // namespace muster::pipeline
