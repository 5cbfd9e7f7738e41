#include "store/dynamodb/dynamodb_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/record_rules.h"

namespace muster::store {
namespace {

// A transaction has at most 100 changes and 4 MB of items.
constexpr size_t kMaxTransaction = 100;
constexpr size_t kMaxTransactionBytes = 3'500'000;
constexpr size_t kItemBytes = 4'000;  // upper bound for all attributes but the body

}  // namespace

Result<std::vector<Written>> DynamoDbWriter::Write(std::span<const Change> changes) {
  if (changes.empty()) return std::vector<Written>{};
  return changes.size() == 1 ? WriteOne(changes[0]) : WriteMany(changes);
}

DynamoDbWriter::Request DynamoDbWriter::RequestOf(
    const Change& change, const std::optional<ServerClock::Reading>& reading) {
  const Record& record = change.record;
  Request request{.json = {}, .nonce = env_.NewId()};
  DynamoDbUpdate update(items_.Request(record.kind, record.key));
  if (record.version != 0) update.If("version", "=", record.version);
  if (change.op == Change::Op::kDelete) {
    request.json = std::move(update).Take();
    return request;
  }
  request.version = record.version != 0 ? record.version + 1 : FirstVersion(env_);
  update.Set("version", request.version)
      .Set("owner", record.owner)
      .Set("attempt", int64_t{record.attempt})
      .Set("body", record.body)
      .Set("nonce", request.nonce);
  if (change.due.IsTimed()) {
    const ServerClock::Times times = reading->At(change.due);
    update.Set("due", times.due).Set("ready", times.ready);
  }
  if (record.version == 0) {
    const int shard = static_cast<int>(env_.Random() % kDynamoDbShards);
    update.IfMissing()
        .Set("queue", record.queue)
        .Set("epoch", int64_t{0})
        .Set("due_in", items_.DueIn(record.kind, record.queue, shard));
  } else if (change.due.kind == Due::Kind::kNever) {
    update.Remove("due").Remove("ready");
  }
  request.json = std::move(update).Take();
  return request;
}

// One reading for all changes of a write, so that none is older than another.
Result<std::optional<ServerClock::Reading>> DynamoDbWriter::ReadingFor(
    std::span<const Change> changes) {
  const bool timed = std::any_of(changes.begin(), changes.end(),
                                 [](const Change& change) { return change.due.IsTimed(); });
  if (!timed) return std::optional<ServerClock::Reading>{};
  MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
  return std::optional<ServerClock::Reading>(reading);
}

Result<std::vector<Written>> DynamoDbWriter::WriteOne(const Change& change) {
  MUSTER_ASSIGN(const auto reading, ReadingFor({&change, 1}));
  const Request request = RequestOf(change, reading);
  const char* operation = change.op == Change::Op::kPut ? "UpdateItem" : "DeleteItem";
  MUSTER_ASSIGN(const DynamoDbAnswer answer, client_.Call(operation, request.json));
  const Written applied{.applied = true, .version = request.version};
  if (answer.ok()) return std::vector<Written>{applied};
  if (!answer.ConditionFailed()) return client_.ErrorOf(operation, answer);
  if (!answer.in_doubt) return std::vector<Written>{{}};
  // An earlier try may have been applied, and be the conflict.
  const Json item = DynamoDbItemIn(answer.body);
  if (change.op == Change::Op::kPut && DynamoDbTextOf(item, "nonce") == request.nonce) {
    return std::vector<Written>{applied};
  }
  const bool replaced = change.op == Change::Op::kPut && change.record.version != 0;
  if (replaced && DynamoDbNumberOf(item, "version") == request.version) {
    return std::vector<Written>{{}};  // the conflicting change is another writer's
  }
  return Error{
      Code::kUnknownOutcome,
      client_.place().Name() + ": it is not known whether '" + change.record.key + "' was changed",
      "read the record again"};
}

Result<std::vector<Written>> DynamoDbWriter::WriteMany(std::span<const Change> changes) {
  std::vector<Written> answers(changes.size());
  std::vector<size_t> group;
  size_t bytes = 0;
  bool wrote = false;
  const auto flush = [&]() -> Status {
    auto written = WriteGroup(changes, std::exchange(group, {}), answers);
    bytes = 0;
    if (written) return wrote = true, Status{};
    Error error = std::move(written).error();
    if (wrote) error.code = Code::kUnknownOutcome;  // earlier groups were applied
    return error;
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const size_t size = changes[i].record.body.size() + kItemBytes;
    if (group.size() == kMaxTransaction || bytes + size > kMaxTransactionBytes) {
      MUSTER_TRY(flush());
    }
    group.push_back(i);
    bytes += size;
  }
  MUSTER_TRY(flush());
  return answers;
}

// One transaction, retried without the changes whose conditions failed: those are decided. A
// transaction with a token is applied once however often it is sent, so a final response is
// certain.
Status DynamoDbWriter::WriteGroup(std::span<const Change> changes, std::vector<size_t> group,
                                  std::vector<Written>& answers) {
  DynamoDbPatience patience = client_.NewPatience();
  MUSTER_ASSIGN(const auto reading, ReadingFor(changes));
  while (!group.empty()) {
    Json transaction{{"ClientRequestToken", env_.NewId()}, {"TransactItems", Json::array()}};
    std::vector<int64_t> versions;
    for (const size_t i : group) {
      Request request = RequestOf(changes[i], reading);
      const char* name = changes[i].op == Change::Op::kPut ? "Update" : "Delete";
      transaction["TransactItems"].push_back(Json{{name, std::move(request.json)}});
      versions.push_back(request.version);
    }
    MUSTER_ASSIGN(const DynamoDbAnswer answer,
                  client_.Call("TransactWriteItems", transaction, patience));
    if (answer.ok()) {
      for (size_t i = 0; i < group.size(); ++i) answers[group[i]] = {true, versions[i]};
      return {};
    }
    MUSTER_ASSIGN(group, WithoutFailed(std::move(group), answer));
  }
  return {};
}

Result<std::vector<size_t>> DynamoDbWriter::WithoutFailed(std::vector<size_t> group,
                                                          const DynamoDbAnswer& answer) {
  const Json reasons = answer.body.value("CancellationReasons", Json::array());
  std::vector<size_t> left;
  for (size_t i = 0; i < group.size() && i < reasons.size(); ++i) {
    const std::string code = reasons[i].value("Code", "");
    if (code == "ConditionalCheckFailed") continue;
    if (code == "ValidationError") return client_.ErrorOf("TransactWriteItems", answer);
    left.push_back(group[i]);
  }
  if (reasons.size() != group.size() || left.size() == group.size()) {
    return client_.ErrorOf("TransactWriteItems", answer);
  }
  return left;
}

}  // namespace muster::store
