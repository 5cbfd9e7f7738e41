#include "task/notify/notification.h"

#include <thread>

#include "core/secrets.h"
#include "net/http.h"
#include "task/call/process.h"
#include "task/notify/notification_file.h"

namespace muster::task {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr size_t kMaxSnsSubject = 100;

Status Post(const std::string& url, const Notification& news, const std::stop_token& stop) {
  net::HttpClient http;
  MUSTER_ASSIGN(const net::HttpResponse response,
                http.Send({.method = "POST",
                           .url = url,
                           .headers = {{"Content-Type", "application/json"},
                                       {"Idempotency-Key", news.dedupe}},
                           .body = news.Line(),
                           .timeout = kPatience},
                          stop));
  if (response.status / 100 == 2) return {};
  return Error{Code::kUnavailable, "HTTP status " + std::to_string(response.status)};
}

Status RunCommand(const std::string& command, const Notification& news, Env& env,
                  const std::stop_token& stop) {
  ProcessSpec spec{
      .command = {"/bin/sh", "-c", command},
      .environment = {{"MUSTER_SUBJECT", news.subject}, {"MUSTER_DEDUPE", news.dedupe}}};
  spec.input = ToJsonText(news.message) + "\n";
  MUSTER_ASSIGN(const ProcessResult result, RunProcess(spec, env, stop));
  if (result.signal != 0) return Error{Code::kUnavailable, "the command did not finish in time"};
  if (result.exit_code == 0) return {};
  return Error{Code::kUnavailable,
               "exit code " + std::to_string(result.exit_code) + ": " + Redact(result.error_end)};
}

// The context of a call to SNS: wanted until the courier stops.
class DeliveryContext final : public states::TaskContext {
 public:
  DeliveryContext(Env& env, std::stop_token stop) : env_(env), stop_(std::move(stop)) {}

  Env& env() override { return env_; }
  bool KeepAlive() override { return !stop_.stop_requested(); }
  std::stop_token stop() const override { return stop_; }

 private:
  Env& env_;
  const std::stop_token stop_;
};

Status Publish(const std::string& topic, const Notification& news, states::TaskExecutor& aws,
               Env& env, const std::stop_token& stop) {
  if (topic.empty()) return Error{Code::kInvalid, "no topic given", "set `topic` to its ARN"};
  const states::TaskCall publish{
      .resource = "arn:aws:states:::sns:publish",
      .input = Json{{"TopicArn", topic},
                    {"Subject", news.subject.substr(0, kMaxSnsSubject)},
                    {"Message", news.message},
                    {"MessageAttributes",
                     {{"dedupe", {{"DataType", "String"}, {"StringValue", news.dedupe}}}}}},
      .credentials = nullptr,
      .token = news.dedupe,
      .execution = "notify",
      .state = "Notify",
      .timeout = kPatience};
  DeliveryContext context(env, stop);
  const states::TaskOutcome outcome = aws.Start(publish, context);
  if (const auto* failure = std::get_if<states::TaskFailure>(&outcome))
    return Error{Code::kUnavailable, failure->error + ": " + failure->cause};
  return {};
}

}  // namespace

std::string Notification::Line() const {
  return ToJsonText(Json{{"dedupe", dedupe}, {"subject", subject}, {"message", message}});
}

Status CheckTarget(const std::string& target) {
  for (const char* start : {"file:", "http://", "https://", "command:", "arn:aws:sns:"}) {
    if (target.starts_with(start)) return {};
  }
  if (target == "sns") return {};
  return Error{Code::kInvalid, "muster:notify: unknown notification target '" + target + "'",
               "use file:PATH, https://…, command:PROGRAM, sns or arn:aws:sns:…"};
}

Status Deliver(const Notification& news, states::TaskExecutor& aws, Env& env,
               const std::stop_token& stop) {
  if (CountSecretReferences(news.target) != news.references) {
    return Error{Code::kInvalid, "the target has a secret reference that came with data",
                 "put it into the definition: references in data are never resolved"};
  }
  MUSTER_ASSIGN(const std::string place, ExpandSecrets(news.target));
  // Bounds every kind of delivery, a command's too.
  std::stop_source over;
  const std::stop_callback stopped(stop, [&] { over.request_stop(); });
  const std::jthread clock([&](const std::stop_token& done) {
    if (env.Sleep(kPatience, done)) over.request_stop();
  });
  if (place == "sns" || place.starts_with("arn:"))
    return Publish(place == "sns" ? news.topic : place, news, aws, env, over.get_token());
  if (place.starts_with("file:")) return AppendNotification(place.substr(5), news);
  if (place.starts_with("command:"))
    return RunCommand(place.substr(8), news, env, over.get_token());
  return Post(place, news, over.get_token());
}

}  // namespace muster::task
