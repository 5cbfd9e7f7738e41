#include "base/json.h"
#include "muster/pipeline.h"
#include "pipeline/escape.h"

namespace muster {
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
  return *this;
}

std::string Progress::ToJson() const {
  return ToJsonText(Json{{"position", EscapeBytes(position)},
                         {"end", EscapeBytes(end)},
                         {"read", counts.read},
                         {"written", counts.written},
                         {"skipped", counts.skipped},
                         {"failed", counts.failed},
                         {"bytes", counts.bytes}});
}

Result<Progress> Progress::FromJson(std::string_view text) {
  MUSTER_ASSIGN(const Json json, ParseJson(text, "progress"));
  if (!json.is_object()) return NoProgress("no object");
  Progress progress;
  MUSTER_ASSIGN(progress.position, PositionIn(json, "position"));
  MUSTER_ASSIGN(progress.end, PositionIn(json, "end"));
  MUSTER_ASSIGN(progress.counts.read, CountIn(json, "read"));
  MUSTER_ASSIGN(progress.counts.written, CountIn(json, "written"));
  MUSTER_ASSIGN(progress.counts.skipped, CountIn(json, "skipped"));
  MUSTER_ASSIGN(progress.counts.failed, CountIn(json, "failed"));
  MUSTER_ASSIGN(progress.counts.bytes, CountIn(json, "bytes"));
  return progress;
}

}  // namespace muster
