#include "states/asl/items.h"

#include <set>
#include <vector>

#include "states/run/interpreter.h"

namespace muster::states {
namespace {

Error Bad(std::string what) { return {Code::kInvalid, std::move(what)}; }

// The rows of a CSV text (RFC 4180: quoted fields may contain delimiters, line ends and doubled
// quotes).
Result<std::vector<std::vector<std::string>>> ParseCsv(const std::string& text, char delimiter) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool quoted = false;
  bool any = false;
  const auto end_row = [&] {
    if (!any) return;
    row.push_back(std::move(field));
    rows.push_back(std::move(row));
    row.clear();
    field.clear();
    any = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += '"';
        ++i;
      } else {
        quoted = false;
      }
      continue;
    }
    if (c == '\n') {
      end_row();
    } else if (c == '\r') {
      continue;
    } else {
      any = true;
      if (c == '"' && field.empty()) {
        quoted = true;
      } else if (c == delimiter) {
        row.push_back(std::move(field));
        field.clear();
      } else {
        field += c;
      }
    }
  }
  if (quoted) return Bad("a quote in the CSV file is not closed");
  end_row();
  return rows;
}

Result<Json> CsvItems(const ItemReader& reader, const std::string& body) {
  MUSTER_ASSIGN(auto rows, ParseCsv(body, reader.csv_delimiter.front()));
  std::vector<std::string> headers = reader.csv_headers;
  size_t first = 0;
  if (headers.empty()) {
    if (rows.empty()) return Json::array();
    headers = rows[0];
    first = 1;
  }
  if (std::set<std::string>(headers.begin(), headers.end()).size() != headers.size()) {
    return Bad("CSV headers cannot contain duplicates.");
  }
  Json items = Json::array();
  for (size_t i = first; i < rows.size(); ++i) {
    Json item = Json::object();
    for (size_t column = 0; column < headers.size(); ++column) {
      item[headers[column]] = column < rows[i].size() ? rows[i][column] : "";
    }
    items.push_back(std::move(item));
  }
  return items;
}

Result<Json> JsonlItems(const std::string& body) {
  Json items = Json::array();
  for (size_t start = 0; start < body.size();) {
    const size_t end = std::min(body.find('\n', start), body.size());
    const std::string line = body.substr(start, end - start);
    start = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json item = Json::parse(line, nullptr, false);
    if (item.is_discarded())
      return Bad("line " + std::to_string(items.size() + 1) + " of the file is not JSON");
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace

Result<Json> ParseItems(const ItemReader& reader, const Json& answer) {
  const InputType type = reader.input_type;
  if (type == InputType::kObjects) {
    const auto contents = answer.is_object() ? answer.find("Contents") : answer.end();
    if (answer.is_object() && contents != answer.end()) return *contents;
    if (answer.is_array()) return answer;
    return Json::array();
  }
  const bool has_body = answer.is_object() && answer.contains("Body");
  const Json& body = has_body ? answer["Body"] : answer;
  if (type == InputType::kJson || type == InputType::kManifest) {
    Json items =
        body.is_string() ? Json::parse(body.get_ref<const std::string&>(), nullptr, false) : body;
    if (items.is_discarded() && type == InputType::kManifest)
      return CsvItems(reader, body.get<std::string>());
    if (items.is_discarded()) return Bad("the file is not JSON");
    if (!items.is_array()) return Bad("Attempting to map over non-iterable node.");
    return items;
  }
  if (!body.is_string())
    return Bad("the call of the ItemReader did not answer with a file in \"Body\"");
  if (type == InputType::kCsv) return CsvItems(reader, body.get_ref<const std::string&>());
  if (type == InputType::kJsonLines) return JsonlItems(body.get_ref<const std::string&>());
  return Bad("cannot read items of the type " + std::string(kInputTypes.NameOf(type)));
}

Json MakeBatches(const Json& items, const Json& batch_input, int64_t most_items,
                 size_t most_bytes) {
  Json batches = Json::array();
  size_t bytes = 0;
  for (const Json& item : items) {
    const size_t item_bytes = JsonBytes(item, most_bytes) + 1;
    const bool full = batches.empty() ||
                      static_cast<int64_t>(batches.back()["Items"].size()) >= most_items ||
                      bytes + item_bytes > most_bytes;
    if (full) {
      Json batch = Json::object();
      if (!batch_input.is_null()) batch["BatchInput"] = batch_input;
      bytes = JsonBytes(batch, most_bytes) + 11;
      batch["Items"] = Json::array();
      batches.push_back(std::move(batch));
    }
    batches.back()["Items"].push_back(item);
    bytes += item_bytes;
  }
  return batches;
}

}  // namespace muster::states
