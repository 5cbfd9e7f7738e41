#include "task/notify/notify_executor.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "core/guard.h"
#include "core/json.h"
#include "core/log.h"
#include "core/secrets.h"
#include "task/parameters.h"
#include "task/secret_references.h"

namespace muster::task {
namespace {

// One that hangs holds up a quarter of the deliveries.
constexpr int kCouriers = 4;
constexpr milliseconds kLookAgain{1'000};
constexpr milliseconds kLastPatience{10'000};

class NotifyExecutor final : public Notifier {
 public:
  NotifyExecutor(states::TaskExecutor& aws, Env& env, std::string url)
      : aws_(aws), env_(env), url_(std::move(url)) {}

  ~NotifyExecutor() override {
    std::set<std::string> unsettled;
    {
      const std::lock_guard lock(mutex_);
      unsettled = migrations_;
    }
    for (const std::string& migration : unsettled) {
      if (!settled_.contains(migration)) static_cast<void>(Settle(migration, kLastPatience));
    }
  }
  NotifyExecutor(const NotifyExecutor&) = delete;
  NotifyExecutor& operator=(const NotifyExecutor&) = delete;

  bool Runs(std::string_view resource) const override { return resource == "muster:notify"; }

  states::TaskOutcome Start(const states::TaskCall& call,
                            states::TaskContext& /*context*/) override {
    std::vector<Notification> letters;
    const auto migration = ReadCall(call, letters);
    if (!migration) return states::TaskFailure{"States.Runtime", migration.error().ToString()};
    if (const Status queued = Queue(*migration, letters); !queued) {
      return states::TaskFailure{FailureName("Notify", queued.error().code),
                                 Redact(queued.error().ToString())};
    }
    return states::TaskSuccess{Json{{"queued", letters.size()}}};
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) override {}

  Status DeliverFor(const std::string& migration) override {
    MUSTER_TRY(Open());
    const std::lock_guard lock(mutex_);
    if (migrations_.insert(migration).second) MUSTER_TRY(outbox_->TakeBack(migration));
    while (couriers_.size() < static_cast<size_t>(kCouriers))
      couriers_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
    changed_.notify_all();
    return {};
  }

  Result<std::vector<Letter>> Settle(const std::string& migration, milliseconds patience) override {
    MUSTER_TRY(Open());
    const MonoTime end = env_.MonoNow() + patience;
    while (true) {
      MUSTER_ASSIGN(auto letters, outbox_->List(migration));
      const bool settled = std::all_of(letters.begin(), letters.end(), [](const Letter& letter) {
        return letter.delivered || !letter.error.empty();
      });
      std::unique_lock lock(mutex_);
      if (settled || env_.MonoNow() >= end) {
        settled_.insert(migration);
        return letters;
      }
      changed_.wait_for(lock, milliseconds(50));
    }
  }

 private:
  static Result<std::string> ReadCall(const states::TaskCall& call,
                                      std::vector<Notification>& letters) {
    MUSTER_ASSIGN(const Parameters parameters,
                  Parameters::Read(call, {"targets", "subject", "message", "dedupe", "topic",
                                          "migration", "folder"}));
    MUSTER_ASSIGN(const std::string folder, parameters.Optional("folder"));
    Notification news;
    MUSTER_ASSIGN(news.subject, parameters.Required("subject"));
    MUSTER_ASSIGN(news.dedupe, parameters.Optional("dedupe", call.token));
    MUSTER_ASSIGN(news.topic, parameters.Optional("topic"));
    MUSTER_ASSIGN(const std::string migration, parameters.Optional("migration", call.execution));
    news.message = parameters.Value("message");
    const Json list = parameters.Value("targets");
    if (!list.is_array()) return parameters.Wrong("targets must be an array of strings");
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_string()) return parameters.Wrong("targets must be an array of strings");
      news.target = list[i];
      const std::string pointer = JsonPointerTo("/targets", std::to_string(i));
      MUSTER_TRY(CheckReferences(call, pointer, news.target));
      news.references = CountSecretReferences(news.target);
      MUSTER_TRY(CheckTarget(news.target));
      constexpr std::string_view kFile = "file:";
      if (news.target.starts_with(kFile))
        news.target = std::string(kFile) + InFolder(folder, news.target.substr(kFile.size()));
      letters.push_back(news);
    }
    return migration;
  }

  Status Open() {
    const std::lock_guard lock(mutex_);
    if (outbox_) return {};
    MUSTER_ASSIGN(store_, store::OpenStore(url_, env_));
    outbox_ = std::make_unique<Outbox>(*store_, env_);
    return {};
  }

  Status Queue(const std::string& migration, const std::vector<Notification>& letters) {
    MUSTER_TRY(Open());
    for (const Notification& news : letters) MUSTER_TRY(outbox_->Add(migration, news));
    return DeliverFor(migration);
  }

  // A courier: looks everywhere, then waits for news or for letters that are due again.
  void Work(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::set<std::string> migrations;
      {
        const std::lock_guard lock(mutex_);
        migrations = migrations_;
      }
      bool found = false;
      for (const std::string& migration : migrations) {
        LogThrown("notifications of '" + migration + "'",
                  [&] { found = DeliverOne(migration, stop) || found; });
      }
      if (found) continue;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kLookAgain, [] { return false; });
    }
  }

  // False: there was nothing to deliver. A store that does not answer is asked again later.
  bool DeliverOne(const std::string& migration, const std::stop_token& stop) {
    auto taken = outbox_->Take(migration, stop);
    if (!taken || !*taken) return false;
    const auto letter = Outbox::Read((*taken)->record());
    if (!letter) {
      Log(Level::kError, "a notification cannot be read", {{"error", letter.error().message}});
      static_cast<void>(outbox_->SetAside(**taken));
      changed_.notify_all();
      return true;
    }
    const Status delivered = Deliver(letter->news, aws_, env_, stop);
    // In time for the next process: nobody waits for the lease.
    static_cast<void>(outbox_->Settle(**taken, delivered, !stop.stop_requested()));
    changed_.notify_all();
    return true;
  }

  states::TaskExecutor& aws_;
  Env& env_;
  const std::string url_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Outbox> outbox_;
  std::set<std::string> migrations_;
  std::set<std::string> settled_;
  std::vector<std::jthread> couriers_;  // the last: they use all of the above
};

}  // namespace

std::unique_ptr<Notifier> MakeNotifyExecutor(states::TaskExecutor& aws, Env& env,
                                             std::string store_url) {
  return std::make_unique<NotifyExecutor>(aws, env, std::move(store_url));
}

}  // namespace muster::task
