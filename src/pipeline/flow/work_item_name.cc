#include <charconv>

#include "core/escape_bytes.h"
#include "pipeline/flow/shards.h"

namespace muster::pipeline {
namespace {

constexpr std::string_view kFirst = "0";
constexpr std::string_view kEscapedZero = "%30";
constexpr std::string_view kEscapedUnderscore = "%5F";

// Never contains `__` and never begins with `_`, so that the last `__` of a name is its separator.
std::string EscapePosition(const std::string& position) {
  if (position.empty()) return std::string(kFirst);
  if (position == kFirst) return std::string(kEscapedZero);
  std::string text;
  bool after_underscore = true;
  for (const char c : EscapeBytes(position)) {
    if (c == '_' && after_underscore) {
      text += kEscapedUnderscore;
      after_underscore = false;
    } else {
      text += c;
      after_underscore = c == '_';
    }
  }
  return text;
}

Error NoName(std::string_view text) {
  return {Code::kInvalid, "'" + EscapeBytes(text) + "' is not the name of a work item",
          "it must look like index__shard__position"};
}

}  // namespace

std::string WorkItemName::ToString() const {
  return EscapeBytes(collection) + "__" + std::to_string(shard) + "__" + EscapePosition(position);
}

Result<WorkItemName> WorkItemName::Parse(std::string_view text) {
  const size_t before_position = text.rfind("__");
  if (before_position == std::string_view::npos) return NoName(text);
  const std::string_view head = text.substr(0, before_position);
  const std::string_view tail = text.substr(before_position + 2);
  const size_t before_shard = head.rfind("__");
  if (before_shard == std::string_view::npos || tail.empty()) return NoName(text);
  const std::string_view shard = head.substr(before_shard + 2);

  WorkItemName name;
  const auto [end, error] = std::from_chars(shard.data(), shard.data() + shard.size(), name.shard);
  if (error != std::errc() || end != shard.data() + shard.size() || name.shard < 0) {
    return NoName(text);
  }
  auto collection = UnescapeBytes(head.substr(0, before_shard));
  auto position = UnescapeBytes(tail == kFirst ? "" : tail);
  if (!collection || !position) return NoName(text);
  name.collection = *std::move(collection);
  name.position = *std::move(position);
  return name;
}

}  // namespace muster::pipeline
