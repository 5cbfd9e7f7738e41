#include "store/dynamodb/dynamodb_items.h"

#include <charconv>

#include "core/url.h"

namespace muster::store {
namespace {

void Append(std::string& list, const char* separator, const std::string& more) {
  if (!list.empty()) list += separator;
  list += more;
}

}  // namespace

Json DynamoDbText(std::string_view text) { return Json{{"S", text}}; }

Json DynamoDbNumber(int64_t number) { return Json{{"N", std::to_string(number)}}; }

int64_t DynamoDbMilliseconds(WallTime time) { return time.time_since_epoch().count(); }

std::string DynamoDbItems::Partition(std::string_view kind) const {
  return space_ + "/" + std::string(kind);  // a namespace has no slash
}

std::string DynamoDbItems::DueIn(std::string_view kind, std::string_view queue, int shard) const {
  return space_ + "/" + PercentEncode(kind) + "/" + PercentEncode(queue) + "/" +
         std::to_string(shard);
}

Json DynamoDbItems::Key(std::string_view kind, std::string_view key) const {
  return Json{{"pk", DynamoDbText(Partition(kind))}, {"sk", DynamoDbText(key)}};
}

Json DynamoDbItems::Request(std::string_view kind, std::string_view key) const {
  return Json{{"TableName", table_}, {"Key", Key(kind, key)}};
}

void DynamoDbUpdate::Assign(const std::string& name, Json value) {
  Append(set_, ", ", "#" + name + " = :" + name);
  names_["#" + name] = name;
  values_[":" + name] = std::move(value);
}

DynamoDbUpdate& DynamoDbUpdate::Set(const std::string& name, std::string_view text) {
  Assign(name, DynamoDbText(text));
  return *this;
}

DynamoDbUpdate& DynamoDbUpdate::Set(const std::string& name, int64_t number) {
  Assign(name, DynamoDbNumber(number));
  return *this;
}

DynamoDbUpdate& DynamoDbUpdate::Set(const std::string& name, WallTime time) {
  return Set(name, DynamoDbMilliseconds(time));
}

DynamoDbUpdate& DynamoDbUpdate::Add(const std::string& name, int64_t number) {
  const std::string value = ":add" + std::to_string(number);
  Append(add_, ", ", "#" + name + " " + value);
  names_["#" + name] = name;
  values_[value] = DynamoDbNumber(number);
  return *this;
}

DynamoDbUpdate& DynamoDbUpdate::Remove(const std::string& name) {
  Append(remove_, ", ", "#" + name);
  names_["#" + name] = name;
  return *this;
}

DynamoDbUpdate& DynamoDbUpdate::IfMissing() {
  Append(condition_, " AND ", "attribute_not_exists(pk)");
  return *this;
}

void DynamoDbUpdate::Compare(const std::string& name, const char* comparison, Json value) {
  Append(condition_, " AND ", "#" + name + " " + comparison + " :if_" + name);
  names_["#" + name] = name;
  values_[":if_" + name] = std::move(value);
}

DynamoDbUpdate& DynamoDbUpdate::If(const std::string& name, const char* comparison,
                                   std::string_view text) {
  Compare(name, comparison, DynamoDbText(text));
  return *this;
}

DynamoDbUpdate& DynamoDbUpdate::If(const std::string& name, const char* comparison,
                                   int64_t number) {
  Compare(name, comparison, DynamoDbNumber(number));
  return *this;
}

Json DynamoDbUpdate::Take() && {
  std::string update;
  if (!set_.empty()) Append(update, " ", "SET " + set_);
  if (!add_.empty()) Append(update, " ", "ADD " + add_);
  if (!remove_.empty()) Append(update, " ", "REMOVE " + remove_);
  if (!update.empty()) request_["UpdateExpression"] = std::move(update);
  request_["ConditionExpression"] = std::move(condition_);
  if (!names_.empty()) request_["ExpressionAttributeNames"] = std::move(names_);
  if (!values_.empty()) request_["ExpressionAttributeValues"] = std::move(values_);
  request_["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD";
  return std::move(request_);
}

Json DynamoDbItemIn(const Json& body) { return body.value("Item", Json::object()); }

std::optional<std::string> DynamoDbTextOf(const Json& item, const char* name) {
  const auto attribute = item.find(name);
  if (attribute == item.end() || !attribute->is_object()) return std::nullopt;
  const auto text = attribute->find("S");
  if (text == attribute->end() || !text->is_string()) return std::nullopt;
  return text->get<std::string>();
}

std::optional<int64_t> DynamoDbNumberOf(const Json& item, const char* name) {
  const auto attribute = item.find(name);
  if (attribute == item.end() || !attribute->is_object()) return std::nullopt;
  const auto text = attribute->find("N");
  if (text == attribute->end() || !text->is_string()) return std::nullopt;
  const auto& digits = text->get_ref<const std::string&>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

Result<Record> DynamoDbRecordOf(const Json& item, std::string_view kind) {
  auto key = DynamoDbTextOf(item, "sk");
  auto queue = DynamoDbTextOf(item, "queue");
  auto owner = DynamoDbTextOf(item, "owner");
  auto body = DynamoDbTextOf(item, "body");
  const auto version = DynamoDbNumberOf(item, "version");
  const auto epoch = DynamoDbNumberOf(item, "epoch");
  const auto attempt = DynamoDbNumberOf(item, "attempt");
  if (!key || !queue || !owner || !body || !version || !epoch || !attempt) {
    return Error{Code::kCorrupt,
                 "item '" + key.value_or("") + "' of kind '" + std::string(kind) +
                     "' in DynamoDB lacks attributes of a record",
                 "another program has written to the table: restore or delete that item"};
  }
  Record record{.kind = std::string(kind),
                .queue = *std::move(queue),
                .key = *std::move(key),
                .version = *version,
                .owner = *std::move(owner),
                .epoch = *epoch,
                .attempt = static_cast<int>(*attempt),
                .body = *std::move(body)};
  if (const auto due = DynamoDbNumberOf(item, "due")) {
    record.due = WallTime(std::chrono::milliseconds(*due));
  }
  return record;
}

}  // namespace muster::store
