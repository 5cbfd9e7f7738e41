#include "task/notify/notify_executor.h"

#include <algorithm>
#include <set>
#include <thread>

#include "core/condition.h"
#include "core/guard.h"
#include "core/json.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/secrets.h"
#include "task/parameters.h"
#include "task/secret_references.h"

namespace muster::task {
namespace {

// A target that hangs holds up a quarter of the deliveries.
constexpr int kCouriers = 4;
constexpr milliseconds kLookAgain{1'000};
constexpr milliseconds kLastPatience{10'000};

class NotifyExecutor final : public Notifier {
 public:
  NotifyExecutor(states::TaskExecutor& aws, Env& env, StoreHandle store)
      : aws_(aws), env_(env), store_(std::move(store)), changed_(env) {}

  ~NotifyExecutor() override {
    std::set<std::string> unsettled;
    {
      const MutexLock lock(mutex_);
      unsettled = migrations_;
      for (const std::string& migration : settled_) unsettled.erase(migration);
    }
    for (const std::string& migration : unsettled) {
      static_cast<void>(Settle(migration, kLastPatience));
    }
    // All are stopped at once: otherwise a running one would take what a stopped one has given
    // back.
    std::vector<std::jthread> couriers;
    {
      const MutexLock lock(mutex_);
      couriers.swap(couriers_);
    }
    for (std::jthread& courier : couriers) courier.request_stop();
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

  Status BeginRun(const std::string& run) override { return DeliverFor(run); }

  // Undelivered letters stay for the next process that drives the run.
  Status EndRun(const std::string& run) override {
    MUSTER_TRY(Settle(run, kLastPatience));
    const MutexLock lock(mutex_);
    migrations_.erase(run);
    return {};
  }

  Status DeliverFor(const std::string& migration) override {
    MUSTER_ASSIGN(Outbox* const outbox, Open());
    const MutexLock lock(mutex_);
    settled_.erase(migration);
    if (migrations_.insert(migration).second) MUSTER_TRY(outbox->TakeBack(migration));
    while (couriers_.size() < static_cast<size_t>(kCouriers))
      couriers_.emplace_back([this, outbox](const std::stop_token& stop) { Work(*outbox, stop); });
    changed_.NotifyAll();
    return {};
  }

  Result<std::vector<Letter>> Settle(const std::string& migration, milliseconds patience) override {
    MUSTER_ASSIGN(Outbox* const outbox, Open());
    const MonoTime end = env_.MonoNow() + patience;
    while (true) {
      MUSTER_ASSIGN(auto letters, outbox->List(migration));
      const bool settled = std::all_of(letters.begin(), letters.end(), [](const Letter& letter) {
        return letter.delivered || !letter.error.empty();
      });
      const bool late = env_.MonoNow() >= end;
      MutexLock lock(mutex_);
      if (settled || late) {
        settled_.insert(migration);
        return letters;
      }
      changed_.Wait(lock, milliseconds(50));
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

  // Opened once, and then used without the mutex.
  Result<Outbox*> Open() {
    const MutexLock lock(mutex_);
    if (outbox_) return outbox_.get();
    MUSTER_ASSIGN(store::Store* const store, store_.Open(env_));
    outbox_ = std::make_unique<Outbox>(*store, env_);
    return outbox_.get();
  }

  Status Queue(const std::string& migration, const std::vector<Notification>& letters) {
    MUSTER_ASSIGN(Outbox* const outbox, Open());
    for (const Notification& news : letters) MUSTER_TRY(outbox->Add(migration, news));
    return DeliverFor(migration);
  }

  // A courier: delivers what is due, then waits for more.
  void Work(Outbox& outbox, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::set<std::string> migrations;
      {
        const MutexLock lock(mutex_);
        migrations = migrations_;
      }
      bool found = false;
      for (const std::string& migration : migrations) {
        LogThrown("notifications of '" + migration + "'",
                  [&] { found = DeliverOne(outbox, migration, stop) || found; });
      }
      if (found) continue;
      MutexLock lock(mutex_);
      changed_.Wait(lock, kLookAgain, stop);
    }
  }

  // False: there was nothing to deliver. A store that does not answer is asked again later.
  bool DeliverOne(Outbox& outbox, const std::string& migration, const std::stop_token& stop) {
    auto taken = outbox.Take(migration, stop);
    if (!taken || !*taken) return false;
    const auto letter = Outbox::Read((*taken)->record());
    if (!letter) {
      Log(Level::kError, "a notification cannot be read", {{"error", letter.error().ToString()}});
      static_cast<void>(outbox.Return(**taken, letter.error()));
      NotifyAll();
      return true;
    }
    const Status delivered = Deliver(letter->news, aws_, env_, stop);
    // On a stop, too, so that the next process need not wait for the lease to expire.
    static_cast<void>(outbox.Settle(**taken, delivered, !stop.stop_requested()));
    NotifyAll();
    return true;
  }

  void NotifyAll() {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  }

  states::TaskExecutor& aws_;
  Env& env_;
  const StoreHandle store_;
  Mutex mutex_;
  Condition changed_;
  std::unique_ptr<Outbox> outbox_ GUARDED_BY(mutex_);
  std::set<std::string> migrations_ GUARDED_BY(mutex_);
  std::set<std::string> settled_ GUARDED_BY(mutex_);
  std::vector<std::jthread> couriers_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Notifier> MakeNotifyExecutor(states::TaskExecutor& aws, Env& env,
                                             StoreHandle store) {
  return std::make_unique<NotifyExecutor>(aws, env, std::move(store));
}

}  // namespace muster::task
