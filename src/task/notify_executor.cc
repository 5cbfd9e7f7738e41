#include "task/notify_executor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/http.h"
#include "base/json.h"
#include "base/secrets.h"
#include "task/background.h"
#include "task/parameters.h"
#include "task/process.h"

namespace muster::task {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr size_t kMaxSnsSubject = 100;

struct News {
  std::string subject;
  Json message;
  std::string dedupe;
  std::string topic;

  std::string Line() const {
    return ToJsonText(Json{{"dedupe", dedupe}, {"subject", subject}, {"message", message}});
  }
};

Error LastError(const std::string& path) {
  return Error{Code::kUnavailable, path + ": " + std::strerror(errno)};
}

// Whether a line of the file has this key already.
bool HasKey(const std::string& path, const std::string& dedupe) {
  const std::string begin = "{\"dedupe\":" + ToJsonText(Json(dedupe)) + ",";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(begin)) return true;
  }
  return false;
}

// One at a time looks and appends, so that a key is there once.
Status AppendToFile(const std::string& path, const News& news) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return LastError(path);
  Status done;
  if (flock(file, LOCK_EX) != 0) {
    done = LastError(path);
  } else if (!HasKey(path, news.dedupe)) {
    const std::string line = news.Line() + "\n";
    const ssize_t written = write(file, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size()) || fsync(file) != 0) done = LastError(path);
  }
  close(file);
  return done;
}

Status Post(const std::string& url, const News& news, const std::stop_token& stop) {
  HttpClient http;
  MUSTER_ASSIGN(const HttpResponse response,
                http.Send({.method = "POST",
                           .url = url,
                           .headers = {{"Content-Type", "application/json"},
                                       {"Idempotency-Key", news.dedupe}},
                           .body = news.Line(),
                           .timeout = kPatience},
                          stop));
  if (response.status / 100 == 2) return {};
  return Error{Code::kUnavailable, "it answered with status " + std::to_string(response.status)};
}

Status RunCommand(const std::string& command, const News& news, const std::stop_token& stop) {
  ProcessSpec spec{
      .command = {"/bin/sh", "-c", command},
      .environment = {{"MUSTER_SUBJECT", news.subject}, {"MUSTER_DEDUPE", news.dedupe}}};
  spec.input = ToJsonText(news.message) + "\n";
  MUSTER_ASSIGN(const ProcessResult result, RunProcess(spec, stop));
  if (result.signal != 0) return Error{Code::kUnavailable, "it did not end in time"};
  if (result.exit_code == 0) return {};
  return Error{Code::kUnavailable, "it ended with " + std::to_string(result.exit_code) + ": " +
                                       Redact(result.error_end)};
}

class NotifyExecutor : public TaskExecutor {
 public:
  explicit NotifyExecutor(TaskExecutor& aws) : aws_(aws) {}

  bool Runs(std::string_view resource) const override { return resource == "muster:notify"; }

  TaskOutcome Start(const TaskCall& call, TaskContext& context) override {
    std::vector<std::string> targets;
    const auto news = ReadCall(call, targets);
    if (!news) return TaskFailure{"States.Runtime", news.error().ToString()};
    std::string failures;
    for (const std::string& target : targets) {
      if (const Status told = Tell(target, *news, call, context); !told) {
        failures += (failures.empty() ? "" : "; ") + Redact(target) + ": " +
                    Redact(told.error().ToString());
      }
    }
    if (failures.empty()) return TaskSuccess{Json{{"delivered", targets.size()}}};
    return TaskFailure{"Notify.Failed", failures};
  }

  TaskOutcome Poll(const TaskCall& call, const Json& /*resume*/, TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const TaskCall& /*call*/, const Json& /*resume*/, TaskContext& /*context*/) override {
  }

 private:
  static Result<News> ReadCall(const TaskCall& call, std::vector<std::string>& targets) {
    MUSTER_ASSIGN(const Parameters parameters,
                  Parameters::Read(call, {"targets", "subject", "message", "dedupe", "topic"}));
    News news;
    MUSTER_ASSIGN(news.subject, parameters.Required("subject"));
    MUSTER_ASSIGN(news.dedupe, parameters.Optional("dedupe", call.token));
    MUSTER_ASSIGN(news.topic, parameters.Optional("topic"));
    news.message = parameters.Value("message");
    const Json list = parameters.Value("targets");
    if (!list.is_array()) return parameters.Wrong("targets must be an array of strings");
    for (const Json& target : list) {
      if (!target.is_string()) return parameters.Wrong("targets must be an array of strings");
      MUSTER_TRY(CheckTarget(target.get<std::string>()));
      targets.push_back(target.get<std::string>());
    }
    return news;
  }

  static Status CheckTarget(const std::string& target) {
    for (const char* start : {"file:", "http://", "https://", "command:", "arn:aws:sns:"}) {
      if (target.starts_with(start)) return {};
    }
    if (target == "sns") return {};
    return Error{Code::kInvalid, "muster:notify: there is no target '" + target + "'",
                 "use file:PATH, https://…, command:PROGRAM, sns or arn:aws:sns:…"};
  }

  Status Tell(const std::string& target, const News& news, const TaskCall& call,
              TaskContext& context) {
    MUSTER_ASSIGN(const std::string place, ExpandSecrets(target));
    if (place == "sns" || place.starts_with("arn:")) {
      return Publish(place == "sns" ? news.topic : place, news, call, context);
    }
    TaskCall bounded = call;
    bounded.timeout =
        std::min<std::chrono::milliseconds>(call.timeout.value_or(kPatience), kPatience);
    return InBackground(bounded, context, [&](const std::stop_token& stop) -> Status {
      if (place.starts_with("file:")) return AppendToFile(place.substr(5), news);
      if (place.starts_with("command:")) return RunCommand(place.substr(8), news, stop);
      return Post(place, news, stop);
    });
  }

  Status Publish(const std::string& topic, const News& news, const TaskCall& call,
                 TaskContext& context) {
    if (topic.empty()) {
      return Error{Code::kInvalid, "no topic is given", "name it by its ARN"};
    }
    TaskCall publish = call;
    publish.resource = "arn:aws:states:::sns:publish";
    publish.input = Json{{"TopicArn", topic},
                         {"Subject", news.subject.substr(0, kMaxSnsSubject)},
                         {"Message", news.message}};
    publish.timeout =
        std::min<std::chrono::milliseconds>(call.timeout.value_or(kPatience), kPatience);
    const TaskOutcome outcome = aws_.Start(publish, context);
    if (const auto* failure = std::get_if<TaskFailure>(&outcome)) {
      return Error{Code::kUnavailable, failure->error + ": " + failure->cause};
    }
    return {};
  }

  TaskExecutor& aws_;
};

}  // namespace

std::unique_ptr<TaskExecutor> MakeNotifyExecutor(TaskExecutor& aws) {
  return std::make_unique<NotifyExecutor>(aws);
}

}  // namespace muster::task
