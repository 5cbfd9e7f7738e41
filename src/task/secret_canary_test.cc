// Goal: secret references are resolved in definitions, and never in data. Method: a file with a
// canary, and for each executor a state machine that mentions it both in its definition and through
// its input; a server, program or database at the other end looks for the canary.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "core/json.h"
#include "states/asl/definition.h"
#include "states/run/runner.h"
#include "support/http_server.h"
#include "support/temporary_folder.h"
#include "task/aws/aws_executor.h"
#include "task/call/exec_executor.h"
#include "task/call/http_executor.h"
#include "task/call/sql_executor.h"
#include "task/call/status_executor.h"
#include "task/data/copy_executor.h"
#include "task/data/reconcile_executor.h"
#include "task/data/transform_executor.h"
#include "task/notify/notify_executor.h"

namespace muster::task {
namespace {

using muster::testing::Answer;
using muster::testing::HttpServer;
using muster::testing::HttpServerRequest;
using states::FlowStatus;
using states::RunResult;

constexpr const char* kCanary = "tweety-4711-canary";

// Asks every PostgreSQL client for its password, records it, and rejects it.
class PasswordServer {
 public:
  PasswordServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* place = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, place, size) != 0 || listen(listener_, 8) != 0 ||
        getsockname(listener_, place, &size) != 0) {
      throw std::runtime_error("no port for the test");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
  }
  ~PasswordServer() {
    thread_ = {};
    close(listener_);
  }
  PasswordServer(const PasswordServer&) = delete;
  PasswordServer& operator=(const PasswordServer&) = delete;

  std::string Url(const std::string& password) const {
    return "postgresql://me:" + password + "@127.0.0.1:" + std::to_string(port_) + "/db";
  }

  std::vector<std::string> Passwords() const {
    const std::lock_guard lock(mutex_);
    return passwords_;
  }

 private:
  void Accept(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{listener_, POLLIN, 0};
      if (poll(&ready, 1, 20) <= 0) continue;
      const int client = accept(listener_, nullptr, nullptr);
      Ask(client);
      close(client);
    }
  }

  static std::string Take(int client, size_t bytes) {
    std::string text(bytes, '\0');
    return recv(client, text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes) ? text : "";
  }

  static uint32_t Number(const std::string& bytes, size_t at) {
    uint32_t number = 0;
    if (bytes.size() >= at + 4) memcpy(&number, bytes.data() + at, 4);
    return ntohl(number);
  }

  void Ask(int client) {
    constexpr uint32_t kSsl = 80877103;
    constexpr uint32_t kGss = 80877104;
    std::string head = Take(client, 8);
    while (Number(head, 4) == kSsl || Number(head, 4) == kGss) {
      send(client, "N", 1, MSG_NOSIGNAL);
      head = Take(client, 8);
    }
    if (Number(head, 0) < 8) return;
    Take(client, Number(head, 0) - 8);
    send(client, "R\0\0\0\10\0\0\0\3", 9, MSG_NOSIGNAL);
    const std::string answer = Take(client, 5);
    if (Number(answer, 1) < 5) return;
    const std::string password = Take(client, Number(answer, 1) - 4);
    {
      const std::lock_guard lock(mutex_);
      passwords_.emplace_back(password.c_str());
    }
    using std::string_literals::operator""s;
    const std::string refusal = "E\0\0\0\x1aSFATAL\0C28P01\0Mwrong\0\0"s;
    send(client, refusal.data(), refusal.size(), MSG_NOSIGNAL);
  }

  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> passwords_;
  std::jthread thread_;
};

class SecretCanaryTest : public ::testing::Test {
 protected:
  // A machine of one Task.
  RunResult Run(states::TaskExecutor& executor, const std::string& resource, const Json& parameters,
                const Json& input) {
    const Json machine = {{"StartAt", "S"},
                          {"States",
                           {{"S",
                             {{"Type", "Task"},
                              {"Resource", resource},
                              {"Parameters", parameters},
                              {"End", true}}}}}};
    const auto definition = states::ReadDefinition(ToJsonText(machine), "test", nullptr);
    if (!definition) throw std::runtime_error(definition.error().ToString());
    RunResult result = states::RunInMemory(
        *definition, {.name = "run" + std::to_string(++runs_), .input = states::MakeValue(input)},
        RealEnv(), nullptr, executor);
    // Neither the history nor an error contains it.
    for (const states::Event& event : result.events) {
      if (event.type == "TaskSucceeded" || event.type.ends_with("Exited")) break;
      EXPECT_EQ(ToJsonText(event.ToJson()).find(kCanary), std::string::npos) << event.type;
    }
    return result;
  }

  void ExpectRefused(const RunResult& result, const std::string& why = "secret reference") {
    EXPECT_EQ(result.failure.error, "States.Runtime");
    EXPECT_NE(result.failure.cause.find(why), std::string::npos) << result.failure.cause;
  }

  // Escaped for States.Format.
  static std::string Escaped(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '{' || c == '}') escaped += '\\';
      escaped += c;
    }
    return escaped;
  }

  // Ways in which a target or database can use a PostgreSQL URL: `parameters` gets it as `name`.
  void ExpectPasswordOnlyByDefinition(states::TaskExecutor& executor, const std::string& resource,
                                      const Json& parameters, const std::string& name) {
    const PasswordServer server;
    Json literal = parameters;
    literal[name] = server.Url(reference_);
    Run(executor, resource, literal, Json::object());
    const size_t once = server.Passwords().size();
    EXPECT_GT(once, 0u);

    Json formatted = parameters;
    formatted[name + ".$"] = "States.Format('" + Escaped(server.Url(reference_)) + "{}', $.x)";
    Run(executor, resource, formatted, {{"x", "2"}});
    EXPECT_EQ(server.Passwords(), std::vector<std::string>(2 * once, kCanary));
    ExpectRefused(Run(executor, resource, formatted, {{"x", reference_}}));
    for (const char* elsewhere : {"?host=127.0.0.1", "&port=1", "#", "%3Fhost=h", "@h", "/b", "\n"})
      ExpectRefused(Run(executor, resource, formatted, {{"x", elsewhere}}), "special characters");
    formatted[name + ".$"] = "States.Format('" + Escaped(server.Url("${file:")) + "{}', $.x)";
    ExpectRefused(Run(executor, resource, formatted, {{"x", canary_ + "}"}}), "completes");

    Json computed = parameters;
    computed[name + ".$"] = "$.x";
    const std::string encoded = "%24%7Bfile:" + canary_ + "%7D";
    for (const std::string& password : {reference_, encoded})
      ExpectRefused(Run(executor, resource, computed, {{"x", server.Url(password)}}));
    EXPECT_EQ(server.Passwords().size(), 2 * once);
  }

  void Stage() {
    folder_.Write("data/Person.csv", "Id\n1\n");
    folder_.Write("load.sql", "SELECT Id AS id FROM Person;");
    const auto copy = MakeCopyExecutor();
    const RunResult staged = Run(*copy, "muster:copy",
                                 {{"source", "csv:" + folder_.At("data")},
                                  {"object", "Person"},
                                  {"staging", folder_.At("staging")}},
                                 Json::object());
    ASSERT_EQ(staged.status, FlowStatus::kSucceeded) << staged.failure.cause;
  }

  int runs_ = 0;
  const testing::TemporaryFolder folder_;
  const std::string canary_ = folder_.Write("id_rsa", kCanary);
  const std::string reference_ = "${file:" + canary_ + "}";
  const HttpServer server_{[](const HttpServerRequest&) { return Answer(404, "none"); }};
};

TEST_F(SecretCanaryTest, Http) {
  const auto executor = MakeHttpExecutor();
  const Json parameters = {
      {"ApiEndpoint", server_.Url("/api")},
      {"Method", "POST"},
      {"Headers",
       {{"X-Literal", "Bearer " + reference_},
        {"X-Data.$", "$.x"},
        {"X-Both.$", "States.Format('" + Escaped(reference_) + " for {}', $.name)"}}},
      {"QueryParameters.$", "$"},
      {"RequestBody.$", "$"}};
  Run(*executor, "muster:http", parameters, {{"x", reference_}, {"name", "Ada"}});
  ASSERT_EQ(server_.requests().size(), 1u);
  const HttpServerRequest seen = server_.requests()[0];
  EXPECT_EQ(seen.Header("X-Literal"), std::string("Bearer ") + kCanary);
  EXPECT_EQ(seen.Header("X-Both"), std::string(kCanary) + " for Ada");
  EXPECT_EQ(seen.Header("X-Data"), reference_);
  EXPECT_EQ((seen.body + seen.target).find(kCanary), std::string::npos);

  ExpectRefused(
      Run(*executor, "muster:http", parameters, {{"x", ""}, {"name", "a " + reference_}}));
  Json completed = parameters;
  completed["Headers"] = {{"X-Which.$", "States.Format('$\\{file:{}\\}', $.x)"}};
  for (const Json& input : {Json{{"x", canary_}}, Json{{"x", "/etc/hostname"}}})
    ExpectRefused(Run(*executor, "muster:http", completed, input), "completes a secret reference");
  completed["Headers"] = {{"X-Which.$", "States.Format('" + Escaped(reference_) + "${}', $.x)"}};
  ExpectRefused(Run(*executor, "muster:http", completed, {{"x", reference_.substr(1)}}),
                "completes a secret reference");
  // All of its headers as data.
  Json computed = parameters;
  computed.erase("Headers");
  computed["Headers.$"] = "$.headers";
  Run(*executor, "muster:http", computed, {{"headers", {{"X-Literal", reference_}}}});
  ASSERT_EQ(server_.requests().size(), 2u);
  EXPECT_EQ(server_.requests()[1].Header("X-Literal"), reference_);
}

TEST_F(SecretCanaryTest, AMachineWithoutParametersPassesData) {
  const auto executor = MakeHttpExecutor();
  const Json machine = Json::parse(
      R"({"StartAt": "S", "States": {"S": {"Type": "Task", "Resource": "muster:http", "End": true}}})");
  const auto definition = *states::ReadDefinition(ToJsonText(machine), "test", nullptr);
  states::RunInMemory(definition,
                      {.name = "run",
                       .input = states::MakeValue({{"ApiEndpoint", server_.Url("/")},
                                                   {"Method", "GET"},
                                                   {"Headers", {{"X-Data", reference_}}}})},
                      RealEnv(), nullptr, *executor);
  ASSERT_EQ(server_.requests().size(), 1u);
  EXPECT_EQ(server_.requests()[0].Header("X-Data"), reference_);
}

TEST_F(SecretCanaryTest, Jsonata) {
  const auto executor = MakeHttpExecutor();
  const Json machine = {{"StartAt", "S"},
                        {"QueryLanguage", "JSONata"},
                        {"States",
                         {{"S",
                           {{"Type", "Task"},
                            {"Resource", "muster:http"},
                            {"Arguments",
                             {{"ApiEndpoint", server_.Url("/")},
                              {"Method", "GET"},
                              {"Headers",
                               {{"X-Literal", reference_},
                                {"X-Data", "{% $states.input.x %}"},
                                {"X-Computed", "{% '" + reference_ + "' & '!' %}"}}}}},
                            {"End", true}}}}}};
  const auto jsonata = states::NewJsonataEngine(RealEnv());
  const auto definition = states::ReadDefinition(ToJsonText(machine), "test", jsonata.get());
  ASSERT_TRUE(definition) << definition.error().ToString();
  states::RunInMemory(*definition, {.name = "run", .input = states::MakeValue({{"x", reference_}})},
                      RealEnv(), jsonata.get(), *executor);
  ASSERT_EQ(server_.requests().size(), 1u);
  const HttpServerRequest seen = server_.requests()[0];
  EXPECT_EQ(seen.Header("X-Literal"), kCanary);
  EXPECT_EQ(seen.Header("X-Data"), reference_);
  EXPECT_EQ(seen.Header("X-Computed"), reference_ + "!");
}

TEST_F(SecretCanaryTest, Exec) {
  const auto executor = MakeExecExecutor();
  const RunResult result =
      Run(*executor, "muster:exec",
          {{"Command", {"sh", "-c", R"(printf '["%s","%s"]' "$LITERAL" "$DATA")"}},
           {"Environment", {{"LITERAL", reference_}, {"DATA.$", "$.x"}}},
           {"Input.$", "$"}},
          {{"x", reference_}});
  ASSERT_EQ(result.status, FlowStatus::kSucceeded) << result.failure.cause;
  EXPECT_EQ(*result.output, (Json{kCanary, reference_}));
}

TEST_F(SecretCanaryTest, Sql) {
  const auto executor = MakeSqlExecutor();
  folder_.Write(std::string(kCanary) + ".db", "");
  const std::string database = "sqlite:" + folder_.path() + "/" + reference_ + ".db";
  const RunResult literal =
      Run(*executor, "muster:sql", {{"Database", database}, {"Query", "SELECT 7 AS n"}},
          Json::object());
  EXPECT_EQ(literal.status, FlowStatus::kSucceeded) << literal.failure.cause;
  ExpectRefused(Run(*executor, "muster:sql", {{"Database.$", "$.x"}, {"Query", "SELECT 7 AS n"}},
                    {{"x", database}}));
  const RunResult rows = Run(
      *executor, "muster:sql",
      {{"Database", database}, {"Query", "SELECT ?1 AS x"}, {"Parameters.$", "States.Array($.x)"}},
      {{"x", reference_}});
  ASSERT_EQ(rows.status, FlowStatus::kSucceeded) << rows.failure.cause;
  EXPECT_EQ((*rows.output)["Rows"][0]["x"], reference_);
  ExpectPasswordOnlyByDefinition(*executor, "muster:sql", {{"Query", "SELECT 1"}}, "Database");
}

TEST_F(SecretCanaryTest, Copy) {
  const auto executor = MakeCopyExecutor();
  const std::string source =
      "opensearch+http://me:" + reference_ + "@127.0.0.1:" + std::to_string(server_.port()) + "/a";
  const Json parameters = {{"object", "a"}, {"staging", folder_.At("staging")}};
  Json computed = parameters;
  computed["source.$"] = "$.x";
  ExpectRefused(Run(*executor, "muster:copy", computed, {{"x", source}}));
  EXPECT_TRUE(server_.requests().empty());
  Json literal = parameters;
  literal["source"] = source;
  Run(*executor, "muster:copy", literal, Json::object());
  ASSERT_FALSE(server_.requests().empty());
  EXPECT_EQ(server_.requests()[0].Header("Authorization"), "Basic bWU6dHdlZXR5LTQ3MTEtY2FuYXJ5");
  ExpectPasswordOnlyByDefinition(*executor, "muster:copy", parameters, "source");
}

TEST_F(SecretCanaryTest, Transform) {
  Stage();
  const auto executor = MakeTransformExecutor();
  ExpectPasswordOnlyByDefinition(
      *executor, "muster:transform",
      {{"script", "load.sql"},
       {"plan_folder", folder_.path()},
       {"staging", folder_.At("staging")},
       {"arguments", {{"ENTITY_NAME", "load"}, {"TARGET_TABLE", "people"}}}},
      "target");
}

TEST_F(SecretCanaryTest, Reconcile) {
  Stage();
  const auto executor = MakeReconcileExecutor();
  ExpectPasswordOnlyByDefinition(*executor, "muster:reconcile",
                                 {{"rank", 1},
                                  {"staging", folder_.At("staging")},
                                  {"extracted", Json::object()},
                                  {"transformed", Json::object()},
                                  {"scripts", {{"load", {{"schema", "s"}, {"table", "people"}}}}}},
                                 "target");
}

TEST_F(SecretCanaryTest, Notify) {
  const auto aws = MakeAwsExecutor(RealEnv());
  const std::string store = "sqlite:" + folder_.path() + "/store.db";
  const auto executor = MakeNotifyExecutor(*aws, RealEnv(), store);
  const std::string hook = server_.Url("/hook?key=") + reference_;
  const Json parameters = {{"subject", "news"}, {"message.$", "$"}, {"migration", "m"}};
  Json computed = parameters;
  computed["targets.$"] = "States.Array($.x)";
  for (const std::string& target : {hook, "file:" + folder_.path() + "/" + reference_,
                                    "command:echo " + reference_ + " >" + folder_.At("seen")})
    ExpectRefused(Run(*executor, "muster:notify", computed, {{"x", target}}));
  Json literal = parameters;
  literal["targets"] = Json::array({hook});
  const RunResult queued = Run(*executor, "muster:notify", literal, {{"x", reference_}});
  ASSERT_EQ(queued.status, FlowStatus::kSucceeded) << queued.failure.cause;
  ASSERT_TRUE(executor->Settle("m", std::chrono::minutes(1)));
  ASSERT_EQ(server_.requests().size(), 1u);
  EXPECT_EQ(server_.requests()[0].target, std::string("/hook?key=") + kCanary);
  EXPECT_EQ(server_.requests()[0].body.find(kCanary), std::string::npos);
  EXPECT_EQ(folder_.Read("store.db").find(kCanary), std::string::npos);
  EXPECT_EQ(folder_.Read("store.db-wal").find(kCanary), std::string::npos);
}

TEST_F(SecretCanaryTest, AwsAndStatus) {
  const std::map<std::string, std::string> variables = {{"AWS_REGION", "eu-central-1"},
                                                        {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
                                                        {"AWS_SECRET_ACCESS_KEY", "a secret key"},
                                                        {"AWS_ENDPOINT_URL", server_.Url("/")}};
  const auto aws =
      MakeAwsExecutor(RealEnv(), {.variable = [&](const char* name) {
                        const auto found = variables.find(name);
                        return found == variables.end() ? std::string() : found->second;
                      }});
  Run(*aws, "arn:aws:states:::sns:publish",
      {{"TopicArn", "arn:aws:sns:eu-central-1:1:t"}, {"Message.$", "$.x"}}, {{"x", reference_}});
  ASSERT_FALSE(server_.requests().empty());
  EXPECT_EQ(server_.requests()[0].body.find(kCanary), std::string::npos);

  const auto status = MakeStatusExecutor(RealEnv(), "sqlite:" + folder_.path() + "/store.db");
  const RunResult kept =
      Run(*status, "muster:status",
          {{"tenant_id.$", "$.x"}, {"migration_id", "m"}, {"status", "IN_PROGRESS"}},
          {{"x", reference_}});
  ASSERT_EQ(kept.status, FlowStatus::kSucceeded) << kept.failure.cause;
  EXPECT_EQ((*kept.output)["tenant_id"], reference_);
}

}  // namespace
}  // namespace muster::task
