#include "muster/states.h"

#include <algorithm>
#include <cctype>

#include "core/backoff.h"
#include "core/json.h"
#include "core/log.h"
#include "core/number.h"
#include "core/sha256.h"
#include "states/durable/engine.h"
#include "states/durable/flow_codec.h"
#include "store/store.h"

namespace muster::states {

using namespace states;

namespace {

constexpr size_t kMaxNameChars = 80;
constexpr int kMaxTries = 10;
constexpr std::chrono::hours kRedriveWindow{14 * 24};
constexpr int kScanPage = 100;

Status CheckName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kMaxNameChars &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Error{Code::kInvalid, "bad name of an execution: '" + name + "'",
               "use 1 to 80 of A-Z a-z 0-9 - _ ."};
}

Execution Describe(const FlowRecord& record) {
  Execution execution{.name = record.execution,
                      .machine = record.info.machine_name,
                      .status = record.flow.status,
                      .state = record.flow.state,
                      .start = record.info.start,
                      .stop = record.stop,
                      .due = record.record.due,
                      .redrives = record.info.redrive_count,
                      .output = {},
                      .error = record.flow.failure.error,
                      .cause = record.flow.failure.cause};
  if (record.flow.output) execution.output = ToJsonText(*record.flow.output);
  return execution;
}

Execution Unreadable(const store::Record& stored, const Error& error) {
  Execution execution;
  execution.name = stored.key;
  execution.status = ExecutionStatus::kUnreadable;
  execution.due = stored.due;
  execution.cause = error.ToString();
  return execution;
}

// Where the flow of a token is found: "NAME:PATH:ENTRY:RETRY". Inside of a distributed Map the name
// is that of an iteration, "EXECUTION/PATH".
Result<std::string> KeyOfToken(const std::string& token) {
  const size_t first = token.find(':');
  const size_t second = first == std::string::npos ? first : token.find(':', first + 1);
  if (second == std::string::npos) return Error{Code::kInvalid, "bad task token '" + token + "'"};
  return KeyOf(token.substr(0, token.find_first_of(":/")),
               token.substr(first + 1, second - first - 1));
}

}  // namespace

class States::Impl {
 public:
  Impl(store::Store& store, Env& env, std::vector<TaskExecutor*> executors, StatesOptions options)
      : store_(store),
        env_(env),
        executors_(std::move(executors)),
        options_(std::move(options)),
        jsonata_(NewJsonataEngine(env)),
        machines_(store, jsonata_.get()),
        codec_(store),
        agenda_(env) {}

  Status Start(const ExecutionRequest& request) {
    MUSTER_TRY(CheckName(request.name));
    MUSTER_ASSIGN(Json input, ParseJson(request.input, "input"));
    if (JsonBytes(input, kMaxPayloadBytes) > kMaxPayloadBytes) {
      return Error{Code::kInvalid, "the input is larger than the limit of 262144 bytes"};
    }
    const std::string machine = Sha256Hex(request.definition).substr(0, 40);
    auto known = machines_.Known(machine);
    std::vector<store::Change> changes;
    if (!known) {
      MUSTER_ASSIGN(known, ReadDefinition(request.definition, request.origin, jsonata_.get()));
      changes = FlowCodec::MachineChanges(machine, request.definition);
    }
    MUSTER_ASSIGN(const WallTime now, store_.Now());
    FlowRecord record;
    record.execution = request.name;
    record.machine = machine;
    record.info = {.name = request.name,
                   .machine_name = request.machine,
                   .input = MakeValue(std::move(input)),
                   .start = now};
    if (known->timeout_s)
      record.deadline = record.info.start + std::chrono::seconds(*known->timeout_s);
    FlowLog log(record);
    Interpreter interpreter(known, record.info, env_, jsonata_.get(), log);
    record.flow = interpreter.Begin();
    record.record = store::Record{.kind = kKind,
                                  .queue = request.queue.empty() ? options_.queue : request.queue,
                                  .key = request.name};
    FlowCodec::Encoded encoded = codec_.Encode(record);
    for (store::Change& part : encoded.parts) changes.push_back(std::move(part));
    record.record.body = std::move(encoded.body);
    changes.push_back(store::Change::Put(record.record, store::Due::Now()));
    Backoff backoff(env_);
    for (int tries = 1;; ++tries) {
      auto written = store_.Write(changes);
      if (written && written->back().applied) break;
      if (!written && !IsTransient(written.error().code)) return written.error();
      auto stored = store_.Get(kKind, request.name);
      if (stored && *stored) {
        MUSTER_ASSIGN(const FlowRecord other, codec_.Decode(**std::move(stored)));
        const bool same =
            other.machine == machine && other.info.input && *other.info.input == *record.info.input;
        if (!same) {
          return Error{
              Code::kConflict,
              "there is an execution '" + request.name + "' of another definition or input",
              "choose another name"};
        }
        break;
      }
      if (tries == kMaxTries)
        return written ? Error{Code::kUnavailable, "the store keeps refusing the execution"}
                       : written.error();
      backoff.Pause();
    }
    machines_.Put(machine, known);
    agenda_.Leave(1);
    return {};
  }

  Result<store::Record> LoadRecord(const std::string& key) {
    MUSTER_ASSIGN(auto stored, store_.Get(kKind, key));
    if (stored) return *std::move(stored);
    return NoExecution(key);
  }

  Result<FlowRecord> Load(const std::string& key) {
    MUSTER_ASSIGN(store::Record stored, LoadRecord(key));
    return codec_.Decode(std::move(stored));
  }

  // Whether it has ended, and its branches too. Asked often: what runs is not read whole.
  Result<bool> HasSettled(const std::string& name) {
    MUSTER_ASSIGN(store::Record stored, LoadRecord(name));
    if (SaysRunning(stored.body)) return false;
    MUSTER_ASSIGN(const FlowRecord record, codec_.Decode(std::move(stored)));
    return record.flow.ended() && !record.cleanup;
  }

  Result<std::optional<Execution>> Find(const std::string& name) {
    MUSTER_TRY(CheckName(name));
    auto record = Load(name);
    if (!record && record.error().code == Code::kNotFound) return std::optional<Execution>{};
    if (!record) return record.error();
    return std::optional<Execution>(Describe(*record));
  }

  Result<std::vector<Execution>> List(const std::string& after, int limit) {
    std::vector<Execution> executions;
    std::string from = after.empty() ? "" : after + "/\x7f";
    while (executions.size() < static_cast<size_t>(limit)) {
      MUSTER_ASSIGN(const std::vector<store::Record> page,
                    store_.Scan(kKind, "", from, std::min(limit, kScanPage)));
      if (page.empty()) break;
      for (const store::Record& stored : page) {
        from = stored.key;
        if (const size_t slash = stored.key.find('/'); slash != std::string::npos) {
          // All branches of one execution at once: there may be very many.
          from = stored.key.substr(0, slash) + "/\x7f";
          break;
        }
        if (executions.size() == static_cast<size_t>(limit)) break;
        const auto record = codec_.Decode(stored);
        const bool unreadable = !record && (record.error().code == Code::kCorrupt ||
                                            record.error().code == Code::kInvalid);
        if (!record && !unreadable) return record.error();
        executions.push_back(record ? Describe(*record) : Unreadable(stored, record.error()));
      }
    }
    return executions;
  }

  Result<Json> History(const std::string& name) {
    MUSTER_TRY(CheckName(name));
    MUSTER_ASSIGN(const FlowRecord root, Load(name));
    struct Entry {
      std::string path;
      Event event;
    };
    std::vector<Entry> entries;
    const auto add = [&](const FlowRecord& record) -> Status {
      MUSTER_ASSIGN(std::vector<Event> events, codec_.LoadEvents(record));
      for (Event& event : events) entries.push_back({record.flow.path, std::move(event)});
      return {};
    };
    MUSTER_TRY(add(root));
    const std::string prefix = name + "/";
    std::string after;
    for (;;) {
      MUSTER_ASSIGN(const std::vector<store::Record> page,
                    store_.Scan(kKind, prefix, after, kScanPage));
      for (const store::Record& stored : page) {
        after = stored.key;
        MUSTER_ASSIGN(const FlowRecord record, codec_.Decode(stored));
        if (!record.apart) MUSTER_TRY(add(record));
      }
      if (page.size() < static_cast<size_t>(kScanPage)) break;
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.event.time, a.event.id) < std::tie(b.event.time, b.event.id);
    });
    // Each flow counted for itself; here they are numbered through.
    std::map<std::pair<std::string, int64_t>, int64_t> numbers;
    for (size_t i = 0; i < entries.size(); ++i)
      numbers[{entries[i].path, entries[i].event.id}] = static_cast<int64_t>(i) + 1;
    Json list = Json::array();
    for (Entry& entry : entries) {
      const auto own = numbers.find({entry.path, entry.event.previous});
      entry.event.id = numbers[{entry.path, entry.event.id}];
      entry.event.previous = own == numbers.end() ? 0 : own->second;
      list.push_back(entry.event.ToJson());
    }
    return list;
  }

  Status Stop(const std::string& name, const std::string& error, const std::string& cause) {
    MUSTER_TRY(CheckName(name));
    MUSTER_ASSIGN(const FlowRecord record, Load(name));
    if (record.flow.ended()) return HasEnded(record);
    Driver driver(store_, env_, executors_, options_, machines_, jsonata_.get(), agenda_);
    MUSTER_TRY(driver.EndFrom(name, FlowStatus::kAborted,
                              {.error = error, .cause = cause, .internal = false}));
    MUSTER_ASSIGN(const FlowRecord ended, Load(name));
    if (ended.flow.status != FlowStatus::kAborted) return HasEnded(ended);
    return {};
  }

  Status Redrive(const std::string& name) {
    MUSTER_TRY(CheckName(name));
    return store::Update(store_, kKind, name, [&](std::optional<store::Record> stored) {
      return RedriveFrom(name, std::move(stored));
    });
  }

  Result<std::optional<store::Change>> RedriveFrom(const std::string& name,
                                                   std::optional<store::Record> stored) {
    if (!stored) return NoExecution(name);
    MUSTER_ASSIGN(FlowRecord record, codec_.Decode(*std::move(stored)));
    if (!record.flow.ended())
      return Error{Code::kConflict, "the execution '" + name + "' is running"};
    if (record.flow.status == FlowStatus::kSucceeded) return HasEnded(record);
    if (record.cleanup)
      return Error{Code::kConflict, "the branches of '" + name + "' are still being ended",
                   "try again in a moment"};
    MUSTER_ASSIGN(const WallTime now, store_.Now());
    if (record.stop && now - *record.stop > kRedriveWindow) {
      return Error{Code::kConflict, "the execution '" + name + "' ended more than 14 days ago"};
    }
    if (record.event_count + record.branch_events >= kMaxEvents - 1) {
      return Error{Code::kConflict, "the history of '" + name + "' is full"};
    }
    MUSTER_ASSIGN(auto definition, machines_.FindFor(record));
    MUSTER_TRY(Reset(record, *definition));
    ++record.info.redrive_count;
    if (definition->timeout_s) record.deadline = now + std::chrono::seconds(*definition->timeout_s);
    FlowLog log(record);
    log.Add({.previous = record.flow.last_event,
             .type = "ExecutionRedriven",
             .time = now,
             .details = {{"redriveCount", record.info.redrive_count}}});
    return Freed(record);
  }

  Status Answer(const std::string& token, Json answer) {
    answer["v"] = kCallbackVersion;
    MUSTER_ASSIGN(const std::string key, KeyOfToken(token));
    MUSTER_TRY(CheckWaits(key, token));
    const store::Record record{
        .kind = kCallbackKind, .queue = "none", .key = token, .body = ToJsonText(answer)};
    const auto create =
        [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
      if (!stored) return store::Change::Put(record, store::Due::Never());
      if (stored->body == record.body) return std::nullopt;
      return Error{Code::kConflict, "the task has been answered already"};
    };
    MUSTER_TRY(store::Update(store_, kCallbackKind, token, create));
    return Wake(key, token);
  }

  Status Heartbeat(const std::string& token) {
    MUSTER_ASSIGN(const std::string key, KeyOfToken(token));
    MUSTER_TRY(CheckWaits(key, token));
    MUSTER_ASSIGN(const WallTime now, store_.Now());
    const std::string beat_key = token + "#heartbeat";
    MUSTER_ASSIGN(auto stored, store_.Get(kCallbackKind, beat_key));
    store::Record beat =
        stored ? *std::move(stored)
               : store::Record{.kind = kCallbackKind, .queue = "none", .key = beat_key};
    beat.body = ToJsonText(Json{{"v", kCallbackVersion}, {"time", ToMillis(now)}});
    const store::Change change = store::Change::Put(std::move(beat), store::Due::Never());
    // Another heartbeat at the same time is as good.
    MUSTER_TRY(store_.Write({&change, 1}));
    return {};
  }

  Status Work(std::stop_token stop, const std::string& until_done) {
    StatesOptions options = options_;
    if (!until_done.empty()) {
      MUSTER_ASSIGN(options.queue, QueueOf(until_done, stop));
    }
    Driver driver(store_, env_, executors_, options, machines_, jsonata_.get(), agenda_);
    while (!stop.stop_requested()) {
      const uint64_t seen = agenda_.news();
      auto worked = driver.WorkOnce(stop);
      if (!worked && !IsTransient(worked.error().code)) return worked.error();
      if (!worked) {
        Log(Level::kWarning, "the store does not answer; trying again",
            {{"error", worked.error().message}});
        env_.Sleep(options_.idle_wait + env_.Jitter(options_.idle_wait), stop);
        continue;
      }
      if (*worked) continue;
      if (!until_done.empty()) {
        const auto ended = HasSettled(until_done);
        if (ended && *ended) {
          agenda_.WakeAll();
          return {};
        }
        if (!ended && !IsTransient(ended.error().code)) return ended.error();
      }
      agenda_.Wait(store_, seen, options_.idle_wait, stop);
    }
    return {};
  }

 private:
  // A store that does not answer is asked again.
  Result<std::string> QueueOf(const std::string& execution, const std::stop_token& stop) {
    while (true) {
      auto stored = LoadRecord(execution);
      if (stored) return std::move(stored->queue);
      if (!IsTransient(stored.error().code)) return stored.error();
      if (!env_.Sleep(options_.idle_wait + env_.Jitter(options_.idle_wait), stop))
        return options_.queue;
    }
  }

  static Error NoExecution(const std::string& name) {
    return {Code::kNotFound, "there is no execution '" + name + "'",
            "'muster states list' shows the existing ones"};
  }

  static Error HasEnded(const FlowRecord& record) {
    return {Code::kConflict, "the execution '" + record.execution +
                                 "' has ended: " + std::string(NameOf(record.flow.status))};
  }

  // Makes a flow that has not succeeded run again from where it failed.
  Status Reset(FlowRecord& record, const Definition& definition) {
    Flow& flow = record.flow;
    flow.status = FlowStatus::kRunning;
    flow.failure = {};
    flow.wants = Wants::kNothing;
    flow.task.reset();
    flow.due.reset();
    flow.backing_off = false;
    flow.results.reset();
    record.stop.reset();
    record.cleanup = false;
    record.cancel.reset();
    record.poll = milliseconds(0);
    flow.inside = flow.failed_children.has_value();
    if (!flow.failed_children) return {};
    flow.children = std::move(flow.failed_children);
    flow.failed_children.reset();
    ChildrenProgress& children = *flow.children;
    children.failed = 0;
    children.settled_below = 0;
    children.settled.clear();
    flow.wants = Wants::kChildren;
    flow.retrier_counts.assign(
        definition.machines[static_cast<size_t>(flow.machine)].states.at(flow.state).retry.size(),
        0);
    const std::string prefix = KeyOf(record.execution, ChildPrefix(flow));
    std::string after;
    for (;;) {
      MUSTER_ASSIGN(const std::vector<store::Record> page,
                    store_.Scan(kKind, prefix, after, kScanPage));
      for (const store::Record& stored : page) {
        after = stored.key;
        if (stored.key.find('/', prefix.size()) != std::string::npos) continue;
        MUSTER_ASSIGN(FlowRecord child, codec_.Decode(stored));
        if (child.flow.status == FlowStatus::kSucceeded) {
          const std::string_view key = stored.key;
          if (const auto index = ParseNumber<int64_t>(key.substr(key.rfind('.') + 1)))
            children.settled.insert(*index);
          continue;
        }
        if (!child.flow.ended()) continue;
        MUSTER_TRY(Reset(child, definition));
        MUSTER_ASSIGN(const store::Change change, Freed(child));
        MUSTER_TRY(store_.Write({&change, 1}));
      }
      if (page.size() < static_cast<size_t>(kScanPage)) break;
    }
    while (children.settled.erase(children.settled_below) > 0) ++children.settled_below;
    return {};
  }

  // The change that stores a record, unheld and due at once. Its parts are written first.
  Result<store::Change> Freed(FlowRecord& record) {
    FlowCodec::Encoded encoded = codec_.Encode(record);
    if (!encoded.parts.empty()) MUSTER_TRY(store_.Write(encoded.parts));
    store::Record next = record.record;
    next.body = std::move(encoded.body);
    next.owner.clear();
    next.attempt = 0;
    return store::Change::Put(std::move(next), store::Due::Now());
  }

  Status CheckWaits(const std::string& key, const std::string& token) {
    auto record = Load(key);
    if (!record && record.error().code != Code::kNotFound) return record.error();
    if (!record || record->flow.ended() || !record->flow.task ||
        record->flow.task->token != token) {
      return Error{Code::kNotFound, "no task waits for the token '" + token + "'",
                   "it may have timed out or been answered"};
    }
    return {};
  }

  // The answer is stored: whoever drives the flow finds it. This only makes it look at once.
  Status Wake(const std::string& key, const std::string& token) {
    const auto wake =
        [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
      if (!stored) return std::nullopt;
      MUSTER_ASSIGN(FlowRecord record, codec_.Decode(*std::move(stored)));
      const bool waits = record.flow.wants == Wants::kCallback && record.flow.task &&
                         record.flow.task->token == token;
      // Not yet waiting: it looks for the answer when it does.
      if (!waits || !record.record.owner.empty()) return std::nullopt;
      return store::Change::Put(std::move(record.record), store::Due::Now());
    };
    Status woken = store::Update(store_, kKind, key, wake);
    if (woken || !IsTransient(woken.error().code)) return woken;
    return Error{Code::kUnavailable, "the answer is stored, but the execution could not be woken",
                 "send it again"};
  }

  store::Store& store_;
  Env& env_;
  const std::vector<TaskExecutor*> executors_;
  const StatesOptions options_;
  std::unique_ptr<JsonataEngine> jsonata_;
  MachineCache machines_;
  FlowCodec codec_;
  Agenda agenda_;
};

States::States(store::Store& store, Env& env, std::vector<TaskExecutor*> executors,
               StatesOptions options)
    : impl_(std::make_unique<Impl>(store, env, std::move(executors), std::move(options))) {}
States::~States() = default;

Status States::Start(const ExecutionRequest& request) { return impl_->Start(request); }
Result<std::optional<Execution>> States::Find(const std::string& name) { return impl_->Find(name); }
Result<std::vector<Execution>> States::List(const std::string& after, int limit) {
  return impl_->List(after, limit);
}
Result<Json> States::History(const std::string& name) { return impl_->History(name); }
Status States::Stop(const std::string& name, const std::string& error, const std::string& cause) {
  return impl_->Stop(name, error, cause);
}
Status States::Redrive(const std::string& name) { return impl_->Redrive(name); }

Status States::SendTaskSuccess(const std::string& token, const std::string& output) {
  MUSTER_ASSIGN(Json json, ParseJson(output, "output"));
  return impl_->Answer(token, {{"output", std::move(json)}});
}
Status States::SendTaskFailure(const std::string& token, const std::string& error,
                               const std::string& cause) {
  return impl_->Answer(token, {{"error", error}, {"cause", cause}});
}
Status States::SendTaskHeartbeat(const std::string& token) { return impl_->Heartbeat(token); }
Status States::Work(std::stop_token stop, const std::string& until_done) {
  return impl_->Work(std::move(stop), until_done);
}

std::vector<std::string> CheckStates(std::string_view definition, std::string_view origin,
                                     Env& env) {
  const auto jsonata = NewJsonataEngine(env);
  std::vector<std::string> problems;
  for (const Problem& problem : CheckDefinition(definition, jsonata.get()).problems) {
    problems.push_back(AtPosition(origin, problem.position, problem.message));
  }
  return problems;
}

}  // namespace muster::states
