#include "task/aws/aws_executor.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "task/aws/aws_calls.h"
#include "task/aws/aws_client.h"
#include "task/aws/aws_jobs.h"
#include "task/background.h"

namespace muster::task {
namespace {

// "arn:aws:states:::[aws-sdk:]SERVICE:ACTION[.PATTERN]"
struct Integration {
  bool sdk = false;
  std::string service;
  std::string action;   // as written: "putItem"
  std::string pattern;  // "", "sync", "sync:2" or "waitForTaskToken"
};

std::optional<Integration> ParseIntegration(std::string_view resource) {
  constexpr std::string_view kStates = ":states:::";
  const size_t start = resource.find(kStates);
  if (!resource.starts_with("arn:aws") || start == std::string_view::npos) return std::nullopt;
  resource.remove_prefix(start + kStates.size());
  Integration integration;
  if (resource.starts_with("aws-sdk:")) {
    integration.sdk = true;
    resource.remove_prefix(8);
  }
  const size_t colon = resource.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  integration.service = resource.substr(0, colon);
  resource.remove_prefix(colon + 1);
  const size_t dot = resource.find('.');
  integration.action = resource.substr(0, dot);
  if (dot != std::string_view::npos) integration.pattern = resource.substr(dot + 1);
  return integration;
}

// An action that Step Functions has optimised and that is a single call.
struct Optimised {
  std::string_view service;
  std::string_view action;
  AwsNaming naming;
  std::string_view text;  // a parameter that must be text; JSON given for it is written as text
};

constexpr AwsNaming kDynamoDb{"DynamoDB", "AmazonDynamoDBv2", "AmazonDynamoDBException"};
constexpr std::array kOptimised = {
    Optimised{"dynamodb", "getItem", kDynamoDb, ""},
    Optimised{"dynamodb", "putItem", kDynamoDb, ""},
    Optimised{"dynamodb", "updateItem", kDynamoDb, ""},
    Optimised{"dynamodb", "deleteItem", kDynamoDb, ""},
    Optimised{"sns", "publish", {"SNS", "AmazonSNS", "AmazonSNSException"}, "Message"},
    Optimised{"sqs", "sendMessage", {"SQS", "AmazonSQS", "AmazonSQSException"}, "MessageBody"},
};

const Optimised* FindOptimised(const Integration& integration) {
  for (const Optimised& known : kOptimised) {
    if (known.service == integration.service && known.action == integration.action) return &known;
  }
  return nullptr;
}

class AwsExecutor : public states::TaskExecutor {
 public:
  AwsExecutor(Env& env, net::AwsSurroundings surroundings, std::chrono::milliseconds poll_after)
      : client_(env, std::move(surroundings)), calls_(client_), poll_after_(poll_after) {}

  bool Runs(std::string_view resource) const override {
    if (IsLambdaFunction(resource)) return true;
    const auto integration = ParseIntegration(resource);
    if (!integration) return false;
    if (integration->sdk) return FindAwsService(integration->service) != nullptr;
    const std::string name = integration->service + ":" + integration->action;
    return name == "lambda:invoke" || name == "glue:startJobRun" ||
           name == "states:startExecution" || FindOptimised(*integration) != nullptr;
  }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    if (!call.credentials.is_null()) {
      return states::TaskFailure{
          "States.Runtime",
          "Credentials: assuming another role is not supported; run with that "
          "role's credentials instead"};
    }
    return Outcome(call, context, [&](const std::stop_token& stop) { return Begin(call, stop); });
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& resume,
                           states::TaskContext& context) override {
    return Outcome(call, context, [&](const std::stop_token& stop) {
      const auto integration = ParseIntegration(call.resource);
      if (integration && integration->service == "glue") {
        return PollGlueJob(calls_, call, resume, poll_after_, stop);
      }
      const bool parse = integration && integration->pattern == "sync:2";
      return PollExecution(calls_, call, resume, parse, poll_after_, stop);
    });
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& resume,
              states::TaskContext& /*context*/) override {
    // Without the call's stop token: the call is over.
    if (resume.contains("JobRunId")) StopGlueJob(calls_, resume, {});
    if (resume.contains("ExecutionArn")) StopExecution(calls_, resume, {});
  }

 private:
  // The work names its failures; an error is an exception that was thrown.
  template <class Ask>
  static states::TaskOutcome Outcome(const states::TaskCall& call, states::TaskContext& context,
                                     const Ask& ask) {
    auto outcome = InBackground(
        call, context,
        [&](const std::stop_token& stop) -> Result<states::TaskOutcome> { return ask(stop); });
    if (outcome) return *std::move(outcome);
    return states::TaskFailure{"States.Runtime", outcome.error().ToString()};
  }

  states::TaskOutcome Begin(const states::TaskCall& call, std::stop_token stop) {
    const auto integration = ParseIntegration(call.resource);
    if (!integration) return InvokeLambda(calls_, call, std::move(stop));
    if (integration->sdk) return CallSdk(*integration, call, std::move(stop));
    const bool wait = integration->pattern.starts_with("sync");
    if (integration->service == "lambda") return InvokeLambda(calls_, call, std::move(stop));
    if (integration->service == "glue") {
      return StartGlueJob(calls_, call, wait, poll_after_, std::move(stop));
    }
    if (integration->service == "states") {
      return StartExecution(calls_, call, wait, poll_after_, std::move(stop));
    }
    return CallOptimised(*FindOptimised(*integration), call, std::move(stop));
  }

  states::TaskOutcome CallSdk(const Integration& integration, const states::TaskCall& call,
                              std::stop_token stop) {
    const AwsService& service = *FindAwsService(integration.service);
    auto reply = calls_.Call(service, PascalCase(integration.action), call.input,
                             SdkNaming(service), call.token, std::move(stop));
    if (!reply) return std::move(reply).error();
    return states::TaskSuccess{std::move(reply->body)};
  }

  states::TaskOutcome CallOptimised(const Optimised& known, const states::TaskCall& call,
                                    std::stop_token stop) {
    Json parameters = call.input;
    const std::string text(known.text);
    if (!text.empty() && parameters.is_object() && parameters.contains(text) &&
        !parameters[text].is_string()) {
      parameters[text] = ToJsonText(parameters[text]);
    }
    const AwsService& service = *FindAwsService(known.service);
    auto reply = calls_.Call(service, PascalCase(known.action), std::move(parameters), known.naming,
                             call.token, std::move(stop));
    if (!reply) return std::move(reply).error();
    Json result = std::move(reply->body);
    AddSdkMetadata(result, reply->http);
    return states::TaskSuccess{std::move(result)};
  }

  AwsClient client_;
  AwsCalls calls_;
  const std::chrono::milliseconds poll_after_;
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeAwsExecutor(Env& env, net::AwsSurroundings surroundings,
                                                      std::chrono::milliseconds poll_after) {
  return std::make_unique<AwsExecutor>(env, std::move(surroundings), poll_after);
}

}  // namespace muster::task
