#include "raw_dynamodb.h"

#include <barrier>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "net/http.h"
#include "net/sigv4.h"

namespace muster::bench {
namespace {

constexpr int kWarmUpTurns = 2;

class Raw final : public Side {
 public:
  Raw(const testing::DynamoDbServer& server, std::string table, std::string space)
      : server_(server), table_(std::move(table)), space_(std::move(space)) {}

  Outcome Run(const Load& load) override {
    const int turns = load.turns + kWarmUpTurns;
    std::chrono::steady_clock::time_point begin;
    const auto start = [&]() noexcept { begin = std::chrono::steady_clock::now(); };
    std::barrier ready(load.workers, start);
    std::vector<std::exception_ptr> failures(static_cast<size_t>(load.workers));
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < load.workers; ++worker) {
      workers.emplace_back([&, worker] {
        int turn = 0;
        try {
          for (; turn < turns; ++turn) {
            if (turn == kWarmUpTurns) ready.arrive_and_wait();
            Turn(int64_t{1} + (int64_t{worker} * turns + turn) * load.batch, load.batch);
          }
        } catch (...) {
          failures[static_cast<size_t>(worker)] = std::current_exception();
          if (turn < kWarmUpTurns) ready.arrive_and_drop();
        }
      });
    }
    for (std::jthread& worker : workers) worker.join();
    const auto end = std::chrono::steady_clock::now();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    return {load.records(), end - begin};
  }

 private:
  struct Taken {
    std::string key;
    std::string version;
    std::string body;  // with its escapes
  };

  // Claims `count` records from the `first` on, and completes them.
  void Turn(int64_t first, int count) const {
    std::vector<Taken> taken;
    for (int i = 0; i < count; ++i) taken.push_back(Claim(BenchKey(first + i)));
    if (count == 1) {
      Send("UpdateItem", "{" + Completion(taken[0]) + "}");
      return;
    }
    std::string changes;
    for (const Taken& record : taken) {
      changes += (changes.empty() ? "" : ",") + ("{\"Update\":{" + Completion(record)) + "}}";
    }
    Send("TransactWriteItems", R"({"ClientRequestToken":")" + RealEnv().NewId() +
                                   R"(","TransactItems":[)" + changes + "]}");
  }

  std::string Place(const std::string& key) const {
    return R"("TableName":")" + table_ + R"(","Key":{"pk":{"S":")" + space_ + "/" + kKind +
           R"("},"sk":{"S":")" + key + R"("}})";
  }

  Taken Claim(const std::string& key) const {
    const std::string due = std::to_string(1'800'000'000'000 + kLeaseMs);
    const std::string answer = Send(
        "UpdateItem",
        "{" + Place(key) +
            R"(,"UpdateExpression":"SET #o = :o, claim = :c, due = :d, ready = :d )"
            R"(ADD version :one, epoch :one, attempt :one",)"
            R"("ConditionExpression":"queue = :q AND attempt = :zero AND ready <= :now",)"
            R"("ExpressionAttributeNames":{"#o":"owner"},"ExpressionAttributeValues":{":o":{"S":")" +
            kOwner + R"("},":c":{"S":")" + kRawClaimId + R"("},":q":{"S":")" + kQueue +
            R"("},":one":{"N":"1"},":zero":{"N":"0"},":d":{"N":")" + due + R"("},":now":{"N":")" +
            due + R"("}},"ReturnValues":"ALL_NEW"})");
    return {key, ValueOf(answer, R"("version":{"N":")"), ValueOf(answer, R"("body":{"S":")")};
  }

  std::string Completion(const Taken& record) const {
    return Place(record.key) +
           R"(,"UpdateExpression":"SET version = :n, #o = :o, attempt = :a, body = :b, nonce = :c )"
           R"(REMOVE due, ready","ConditionExpression":"version = :v",)"
           R"("ExpressionAttributeNames":{"#o":"owner"},"ExpressionAttributeValues":{":o":{"S":")" +
           kOwner + R"("},":c":{"S":")" + kRawClaimId + R"("},":a":{"N":"1"},":v":{"N":")" +
           record.version + R"("},":n":{"N":")" + std::to_string(std::stoll(record.version) + 1) +
           R"("},":b":{"S":")" + record.body + R"("}})";
  }

  // The text after `label`, up to the closing quote.
  static std::string ValueOf(const std::string& answer, const std::string& label) {
    const size_t begin = answer.find(label);
    if (begin == std::string::npos) throw std::runtime_error("not applied: " + answer);
    size_t end = begin + label.size();
    while (answer.at(end) != '"') end += answer[end] == '\\' ? 2 : 1;
    return answer.substr(begin + label.size(), end - begin - label.size());
  }

  std::string Send(const std::string& operation, std::string body) const {
    net::HttpRequest request{.method = "POST",
                             .url = server_.Endpoint() + "/",
                             .headers = {{"Content-Type", "application/x-amz-json-1.0"},
                                         {"X-Amz-Target", "DynamoDB_20120810." + operation}},
                             .body = std::move(body)};
    const net::AwsCredentials credentials{.access_key_id = "test",
                                          .secret_access_key = "not-a-secret"};
    const auto signed_texts =
        net::SignRequest(request, credentials, {"local", "dynamodb"}, RealEnv().WallNow());
    if (!signed_texts) throw std::runtime_error(signed_texts.error().ToString());
    auto answer = client_.Send(request);
    if (!answer) throw std::runtime_error(answer.error().ToString());
    if (answer->status != 200) throw std::runtime_error(operation + ": " + answer->body);
    return std::move(answer->body);
  }

  const testing::DynamoDbServer& server_;
  const std::string table_;
  const std::string space_;
  mutable net::HttpClient client_{net::HttpOptions{.use_proxy = false}};
};

}  // namespace

std::unique_ptr<Side> RawDynamoDb(const testing::DynamoDbServer& server, const std::string& table,
                                  const std::string& space) {
  return std::make_unique<Raw>(server, table, space);
}

}  // namespace muster::bench
