#include <algorithm>
#include <stdexcept>

#include "core/json.h"
#include "muster/env.h"
#include "raw_dynamodb.h"

namespace muster::bench {
namespace {

class DynamoDb final : public Table {
 public:
  DynamoDb(const testing::DynamoDbServer& server, const std::string& table,
           const std::string& space)
      : server_(server), table_(table), space_(space) {}

  void Fill(int64_t finished, int64_t due) override {
    // The store passes over what it has settled, which it recognises by its version.
    version_ = static_cast<int64_t>(RealEnv().Random() >> 8);
    for (int64_t n = 1; n <= std::max(filled_, finished + due); ++n) {
      const Json key{{"pk", {{"S", space_ + "/" + kKind}}}, {"sk", {{"S", BenchKey(n)}}}};
      if (n > finished + due) {
        Send(Json{{"DeleteRequest", {{"Key", key}}}});
      } else {
        Send(Json{{"PutRequest", {{"Item", ItemOf(key, n, n > finished)}}}});
      }
    }
    Flush();
    filled_ = finished + due;
    oldest_due_ms_ += filled_;
  }

  int64_t Finished() override { return Count(false) - Count(true); }

 private:
  Json ItemOf(Json item, int64_t n, bool due) const {
    const auto number = [](int64_t value) { return Json{{"N", std::to_string(value)}}; };
    item["queue"] = {{"S", kQueue}};
    item["version"] = number(version_);
    item["owner"] = {{"S", ""}};
    item["epoch"] = number(0);
    item["attempt"] = number(0);
    item["due_in"] = {{"S", space_ + "/" + kKind + "/" + kQueue + "/" + std::to_string(n % 4)}};
    item["body"] = {{"S", R"({"index":"orders","shard":)" + std::to_string(n) +
                              R"(,"start":0,"watermark":"0000000000000000","read":0,)" +
                              R"("written":0,"skipped":0,"failed":0})"}};
    if (due) item["due"] = item["ready"] = number(oldest_due_ms_ + n);
    return item;
  }

  void Send(Json request) {
    constexpr size_t kMostInABatch = 25;
    batch_.push_back(std::move(request));
    if (batch_.size() == kMostInABatch) Flush();
  }

  void Flush() {
    if (batch_.empty()) return;
    const std::string answer = server_.Call(
        "BatchWriteItem", Json{{"RequestItems", {{table_, std::move(batch_)}}}}.dump());
    if (!Json::parse(answer).value("UnprocessedItems", Json::object()).empty()) {
      throw std::runtime_error("the table took only a part of a batch: " + answer);
    }
    batch_ = Json::array();
  }

  int64_t Count(bool due) {
    Json query{{"TableName", table_},
               {"Select", "COUNT"},
               {"Limit", 5000},  // without one, each page reads all that is left into memory
               {"KeyConditionExpression", "pk = :pk"},
               {"ExpressionAttributeValues", {{":pk", {{"S", space_ + "/" + kKind}}}}}};
    if (due) query["FilterExpression"] = "attribute_exists(due)";
    int64_t count = 0;
    while (true) {
      const Json answer = Json::parse(server_.Call("Query", query.dump()));
      count += answer.at("Count").get<int64_t>();
      if (!answer.contains("LastEvaluatedKey")) return count;
      query["ExclusiveStartKey"] = answer["LastEvaluatedKey"];
    }
  }

  const testing::DynamoDbServer& server_;
  const std::string table_;
  const std::string space_;
  Json batch_ = Json::array();
  int64_t version_ = 0;
  int64_t filled_ = 0;
  int64_t oldest_due_ms_ = 1;
};

}  // namespace

std::string BenchKey(int64_t n) {
  const std::string digits = std::to_string(n);
  return "orders__" + std::string(12 - digits.size(), '0') + digits + "__0";
}

std::unique_ptr<Table> DynamoDbTable(const testing::DynamoDbServer& server,
                                     const std::string& table, const std::string& space) {
  return std::make_unique<DynamoDb>(server, table, space);
}

}  // namespace muster::bench
