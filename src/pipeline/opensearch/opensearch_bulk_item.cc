#include "pipeline/opensearch/opensearch_bulk_item.h"

#include <simdjson.h>

#include <charconv>
#include <string_view>

#include "net/opensearch_errors.h"

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;

void ReadError(ondemand::object error, BulkItem& item) {
  for (ondemand::field detail : error) {
    const std::string_view key = detail.unescaped_key();
    if (key == "type") item.type = std::string_view(detail.value().get_string());
    if (key == "reason") item.reason = std::string_view(detail.value().get_string());
    if (key != "caused_by") continue;
    for (ondemand::field cause : detail.value().get_object()) {
      if (cause.unescaped_key().value() != "reason") continue;
      item.reason += ": ";
      item.reason += std::string_view(cause.value().get_string());
    }
  }
}

BulkItem ReadItem(ondemand::object fields) {
  BulkItem item;
  for (ondemand::field field : fields) {
    const std::string_view name = field.unescaped_key();
    if (name == "status") {
      item.status = field.value().get_int64();
    } else if (name == "result") {
      item.is_dropped = std::string_view(field.value().get_string()) == "noop";
    } else if (name == "error") {
      ReadError(field.value().get_object(), item);
    } else if (name == "_index") {
      item.index = std::string_view(field.value().get_string());
    } else if (name == "_seq_no") {
      item.seq_no = field.value().get_int64();
    } else if (name == "_primary_term") {
      item.primary_term = field.value().get_int64();
    }
  }
  return item;
}

}  // namespace

Result<std::optional<std::vector<BulkItem>>> ReadBulkItems(const std::string& answer, bool all) {
  try {
    ondemand::parser parser;
    const simdjson::padded_string padded(answer);
    ondemand::document document = parser.iterate(padded);
    if (!document["errors"].get_bool() && !all) return std::nullopt;
    std::vector<BulkItem> items;
    for (ondemand::object one : document["items"].get_array()) {
      // {"index": {…}}, by the kind of write
      for (ondemand::field field : one) items.push_back(ReadItem(field.value().get_object()));
    }
    return items;
  } catch (const simdjson::simdjson_error& problem) {
    return Error{Code::kUnknownOutcome, problem.what()};
  }
}

Error ErrorOf(const std::string& index, const BulkItem& item) {
  Error error = net::OpenSearchError(
      {.status = static_cast<int>(item.status), .type = item.type, .reason = item.reason}, true);
  error.message = "index " + index + ": " + item.type + ": " + item.reason;
  return error;
}

bool LostAMappingRace(const BulkItem& item) {
  return item.type == "illegal_argument_exception" &&
         (item.reason.find("cannot be changed from type") != std::string::npos ||
          item.reason.find("of different type, current_type") != std::string::npos);
}

bool IsOfDataStream(const BulkItem& item) {
  return item.status == 400 && item.type == "illegal_argument_exception" &&
         item.reason.find("op_type of create are allowed in data streams") != std::string::npos;
}

int64_t CurrentVersion(const std::string& reason) {
  static constexpr std::string_view kBefore = "current version [";
  const size_t found = reason.find(kBefore);
  if (found == std::string::npos) return 0;
  int64_t version = 0;
  const char* const end = reason.data() + reason.size();
  std::from_chars(reason.data() + found + kBefore.size(), end, version);
  return version;
}

}  // namespace muster::pipeline
