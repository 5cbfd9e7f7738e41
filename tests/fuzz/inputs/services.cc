#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "core/json.h"
#include "fuzz/inputs/inputs.h"
#include "muster/migrate.h"
#include "net/aws_credentials.h"
#include "net/s3.h"
#include "pipeline/opensearch/opensearch_bulk.h"
#include "pipeline/opensearch/opensearch_stream.h"
#include "support/hasty_env.h"
#include "support/http_server.h"
#include "task/aws/aws_executor.h"

namespace muster::fuzz {
namespace {

constexpr size_t kMostAnswers = 40;
constexpr int kRunsOfAServer = 500;  // it records every request

// Responds with the parts of the bytes in turn, then repeats the last one; with status 400 if a
// part begins with "!". After too many requests a client gets a 404.
class Service {
 public:
  Service()
      : server_([this](const testing::HttpServerRequest& request) { return Reply(request); }) {}

  void SetAnswers(std::string_view bytes) {
    std::lock_guard lock(mutex_);
    rest_ = bytes;
    answers_ = 0;
  }

  std::string Address() const { return "127.0.0.1:" + std::to_string(server_.port()); }

 private:
  testing::HttpServerReply Reply(const testing::HttpServerRequest& request) {
    // A login response names the next host, which must not be arbitrary.
    if (request.target.ends_with("/token")) return testing::Answer(200, R"({"access_token":"t"})");
    std::lock_guard lock(mutex_);
    if (++answers_ > kMostAnswers) return testing::Answer(404, "[]");
    const auto [answer, rest] = TakePart(rest_);
    std::string body(answer);
    if (!rest.empty()) rest_ = std::string(rest);
    const bool is_error = body.starts_with('!');
    return testing::Answer(is_error ? 400 : 200, is_error ? body.substr(1) : body,
                           {{"Sforce-Locator", "null"}});
  }

  std::mutex mutex_;
  std::string rest_;
  size_t answers_ = 0;
  testing::HttpServer server_;
};

Service& Answering(std::string_view bytes) {
  static std::unique_ptr<Service> service;
  static int runs = 0;
  if (runs++ % kRunsOfAServer == 0) service = std::make_unique<Service>();
  service->SetAnswers(bytes);
  return *service;
}

void ReadFrom(std::string_view bytes, const std::string& scheme, const std::string& rest) {
  const Service& service = Answering(bytes);
  testing::HastyEnv env;
  const auto source = pipeline::OpenSource(scheme + service.Address() + rest, env);
  if (source) ReadAll(**source, [](const pipeline::Document&) {});
}

void ReadSalesforce(std::string_view bytes) {
  setenv("MUSTER_FUZZ_SECRET", "secret", 1);
  ReadFrom(bytes, "salesforce+http://",
           "/User?client_id=app&client_secret=${env:MUSTER_FUZZ_SECRET}");
}

void ReadOpenSearch(std::string_view bytes) { ReadFrom(bytes, "opensearch+http://", "/index"); }

// Lists and reads a bucket.
void ReadBucket(std::string_view bytes) {
  setenv("AWS_ACCESS_KEY_ID", "id", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  Service& service = Answering(bytes);
  testing::HastyEnv env;
  net::S3Client client(
      {.bucket = "bucket", .endpoint = "http://" + service.Address(), .path_style = true}, env);
  static_cast<void>(client.List());
  static_cast<void>(client.Size("key"));
  static_cast<void>(client.Read("key", 0, 4));
}

pipeline::Batch TwoDocuments() {
  pipeline::Batch batch;
  for (const char* id : {"1", "2"}) {
    batch.Add({.id = id, .routing = {}, .body = R"({"n":1.0})", .position = id, .defect = {}});
  }
  return batch;
}

// Writes to a cluster that responds to _bulk with the parts; to a data stream also to the lists of
// its indices, to _mget and to deletions.
void WriteOpenSearch(std::string_view bytes, bool to_stream) {
  Service& service = Answering(bytes);
  testing::HastyEnv env;
  net::OpenSearchClient client({.base_url = "http://" + service.Address()}, env);
  pipeline::Pace pace(env);
  const pipeline::Fence fence{.run = "r", .incarnation = "i", .item = "x", .since_ms = 1'000};
  pipeline::OpenSearchBulk bulk(client, env, pace, "index", {}, fence);
  const pipeline::Patience patience{.deadline = env.MonoNow() + std::chrono::minutes(1)};
  if (!to_stream) {
    static_cast<void>(bulk.Write(TwoDocuments(), patience));
    return;
  }
  bulk.OnlyCreate();
  pipeline::OpenSearchStream stream(client, env, "index");
  static_cast<void>(stream.Write(bulk, TwoDocuments(), patience));
}

void WriteIndex(std::string_view bytes) { WriteOpenSearch(bytes, false); }
void WriteStream(std::string_view bytes) { WriteOpenSearch(bytes, true); }

// Credentials from a container's endpoint, or from instance metadata.
void AskMetadata(std::string_view bytes) {
  const bool in_container = TakeChoice(bytes, 2) == 0;
  Service& service = Answering(bytes);
  testing::HastyEnv env;
  net::AwsSurroundings at{.container_host = "http://" + service.Address(),
                          .metadata_host = "http://" + service.Address()};
  at.variable = [in_container](std::string_view name) -> std::string {
    if (in_container && name == "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") return "/credentials";
    return "";
  };
  static_cast<void>(net::AwsCredentialChain(env, at).Get());
}

// The context of a call that waits for nothing.
class HastyContext final : public states::TaskContext {
 public:
  Env& env() override { return env_; }
  bool KeepAlive() override { return true; }
  std::stop_token stop() const override { return {}; }

 private:
  testing::HastyEnv env_;
};

// A call of a service, its polls, and its cancellation.
void CallAws(std::string_view bytes) {
  static constexpr std::array<std::string_view, 8> kResources{
      "glue:startJobRun.sync", "states:startExecution.sync:2",
      "lambda:invoke",         "dynamodb:getItem",
      "sns:publish",           "sqs:sendMessage",
      "glue:startJobRun",      "aws-sdk:appflow:startFlow"};
  const std::string resource =
      "arn:aws:states:::" + std::string(kResources[TakeChoice(bytes, kResources.size())]);
  Service& service = Answering(bytes);
  HastyContext context;
  const auto executor =
      task::MakeAwsExecutor(context.env(), {.variable = [&](std::string_view name) -> std::string {
                              if (name == "AWS_ENDPOINT_URL") return "http://" + service.Address();
                              return name == "AWS_REGION" || name.starts_with("AWS_ACCESS") ||
                                             name.starts_with("AWS_SECRET_ACCESS")
                                         ? "fuzzed-text"
                                         : "";
                            }});
  const states::TaskCall call{.resource = resource,
                              .input = {{"JobName", "j"},
                                        {"StateMachineArn", "arn:aws:states:r:1:stateMachine:m"},
                                        {"FunctionName", "f"},
                                        {"Message", "m"}},
                              .credentials = {},
                              .token = "t",
                              .execution = "e",
                              .state = "S"};
  states::TaskOutcome outcome = executor->Start(call, context);
  for (int polls = 0; polls < 3; ++polls) {
    const auto* pending = std::get_if<states::TaskPending>(&outcome);
    if (pending == nullptr) return;
    const Json resume = pending->resume;
    outcome = executor->Poll(call, resume, context);
    if (polls == 2) executor->Cancel(call, resume, context);
  }
}

constexpr Input kInputs[] = {{"salesforce_source", ReadSalesforce},
                             {"opensearch_source", ReadOpenSearch},
                             {"opensearch_sink", WriteIndex},
                             {"opensearch_stream", WriteStream},
                             {"bucket", ReadBucket},
                             {"aws_metadata", AskMetadata},
                             {"aws_calls", CallAws}};

}  // namespace

std::span<const Input> ServiceInputs() { return kInputs; }

}  // namespace muster::fuzz
