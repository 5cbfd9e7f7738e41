#include "change/outbox.h"

#include <string_view>

namespace muster::change {
namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Error Invalid(const std::string& message) {
  return Error{Code::kInvalid, message,
               "write TABLE?id=COLUMN&stream=COLUMN,COLUMN&type=COLUMN&payload=COLUMN"
               "&metadata=COLUMN; columns with their usual names can be left out"};
}

}  // namespace

Result<Outbox> ParseOutbox(const std::string& text) {
  const size_t mark = text.find('?');
  Outbox outbox{.table = text.substr(0, mark)};
  if (outbox.table.empty()) return Invalid("an outbox without a table");
  if (mark == std::string::npos) return outbox;
  for (const std::string& part : Split(std::string_view(text).substr(mark + 1), '&')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (value.empty()) return Invalid("outbox '" + outbox.table + "': '" + part + "' has no value");
    if (name == "id") {
      outbox.id = value;
    } else if (name == "stream") {
      outbox.stream = Split(value, ',');
    } else if (name == "type") {
      outbox.type = value;
    } else if (name == "payload") {
      outbox.payload = value;
    } else if (name == "metadata") {
      outbox.metadata = value;
    } else {
      return Invalid("outbox '" + outbox.table + "': '" + name + "' is unknown");
    }
  }
  return outbox;
}

}  // namespace muster::change
