#include "muster/states.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "core/json.h"
#include "core/log.h"
#include "core/sha256.h"
#include "muster/store.h"
#include "states/durable/callbacks.h"
#include "states/durable/engine.h"
#include "states/durable/load_flow.h"
#include "states/durable/read_history.h"
#include "states/durable/redrive.h"

namespace muster::states {

namespace {

constexpr size_t kMaxNameChars = 80;

Status CheckName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kMaxNameChars &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Error{Code::kInvalid, "bad name of an execution: '" + name + "'",
               "use 1 to 80 of A-Z a-z 0-9 - _ ."};
}

// A flow that is due at once is not waiting for its due time.
std::optional<WallTime> WaitsUntil(const store::Record& record) {
  return record.due && !store::IsDueAtOnce(*record.due) ? record.due : std::nullopt;
}

Execution Describe(const FlowRecord& record) {
  Execution execution{.name = record.execution,
                      .machine = record.info.machine_name,
                      .status = record.flow.status,
                      .state = record.flow.state,
                      .start = record.info.start,
                      .stop = record.stop,
                      .due = WaitsUntil(record.record),
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
  execution.due = WaitsUntil(stored);
  execution.cause = error.ToString();
  return execution;
}

}  // namespace

// Not exported, unlike other members of an exported class.
class [[gnu::visibility("hidden")]] States::Impl {
 public:
  Impl(store::Store& store, std::vector<TaskExecutor*> executors, StatesOptions options, Env& env)
      : store_(store),
        env_(env),
        executors_(std::move(executors)),
        options_(std::move(options)),
        jsonata_(NewJsonataEngine(env)),
        machines_(store, jsonata_.get()),
        codec_(store),
        signals_(env) {}

  store::Store& store() { return store_; }

  Status Start(const ExecutionRequest& request) {
    MUSTER_TRY(CheckName(request.name));
    MUSTER_ASSIGN(Json input, ParseJson(request.input, "input"));
    if (JsonBytes(input, kMaxPayloadBytes) > kMaxPayloadBytes) {
      return Error{Code::kInvalid, "the input is larger than the limit of 262144 bytes"};
    }
    const std::string machine = Sha256Hex(request.definition).substr(0, 40);
    auto definition = machines_.FindCached(machine);
    std::vector<store::Change> changes;
    if (!definition) {
      MUSTER_ASSIGN(definition, ReadDefinition(request.definition, request.origin, jsonata_.get()));
      changes = FlowCodec::MachineChanges(machine, request.definition);
    }
    MUSTER_ASSIGN(FlowRecord record, BeginFlow(request, machine, std::move(input), definition));
    FlowCodec::Encoded encoded = codec_.Encode(record);
    for (store::Change& part : encoded.parts) changes.push_back(std::move(part));
    record.record.body = std::move(encoded.body);
    changes.push_back(store::Change::Put(record.record, store::Due::AtOnce()));
    MUSTER_TRY(Create(record, changes));
    machines_.Put(machine, definition);
    signals_.SignalDue(1);
    return {};
  }

  // Whether it has ended, and its branches too. Called often: avoids decoding one that runs.
  Result<bool> HasSettled(const std::string& name) {
    MUSTER_ASSIGN(store::Record stored, LoadRecord(store_, name));
    if (SaysRunning(stored.body)) return false;
    MUSTER_ASSIGN(const FlowRecord record, codec_.Decode(std::move(stored)));
    return record.flow.ended() && !record.cleanup;
  }

  Result<std::optional<Execution>> Find(const std::string& name) {
    MUSTER_TRY(CheckName(name));
    auto record = LoadFlow(store_, name);
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
          // Skips all branches of the execution: there may be very many.
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
    return ReadHistory(store_, name);
  }

  Status Stop(const std::string& name, const std::string& error, const std::string& cause) {
    MUSTER_TRY(CheckName(name));
    MUSTER_ASSIGN(const FlowRecord record, LoadFlow(store_, name));
    if (record.flow.ended()) return HasEnded(record);
    Driver driver(store_, env_, executors_, options_, machines_, jsonata_.get(), signals_);
    MUSTER_TRY(driver.EndFrom(name, FlowStatus::kAborted,
                              {.error = error, .cause = cause, .internal = false}));
    MUSTER_ASSIGN(const FlowRecord ended, LoadFlow(store_, name));
    if (ended.flow.status != FlowStatus::kAborted) return HasEnded(ended);
    return {};
  }

  Status Redrive(const std::string& name) {
    MUSTER_TRY(CheckName(name));
    return states::Redrive(store_, machines_).Run(name);
  }

  Status Work(const std::string& until_done, std::stop_token stop) {
    StatesOptions options = options_;
    if (!until_done.empty()) {
      MUSTER_ASSIGN(options.queue, QueueOf(until_done, stop));
    }
    Driver driver(store_, env_, executors_, options, machines_, jsonata_.get(), signals_);
    while (!stop.stop_requested()) {
      const uint64_t seen = signals_.count();
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
          signals_.SignalAll();
          return {};
        }
        if (!ended && !IsTransient(ended.error().code)) return ended.error();
      }
      signals_.Wait(store_, seen, options_.idle_wait, stop);
    }
    return {};
  }

 private:
  Result<FlowRecord> BeginFlow(const ExecutionRequest& request, const std::string& machine,
                               Json input, const std::shared_ptr<const Definition>& definition) {
    MUSTER_ASSIGN(const WallTime now, store_.Now());
    FlowRecord record;
    record.execution = request.name;
    record.machine = machine;
    record.info = {.name = request.name,
                   .machine_name = request.machine,
                   .input = MakeValue(std::move(input)),
                   .start = now};
    if (definition->timeout_s) record.deadline = now + std::chrono::seconds(*definition->timeout_s);
    FlowLog log(record);
    Interpreter interpreter(definition, record.info, env_, jsonata_.get(), log);
    record.flow = interpreter.Begin();
    record.record = store::Record{.kind = kKind,
                                  .queue = request.queue.empty() ? options_.queue : request.queue,
                                  .key = request.name};
    return record;
  }

  // Creates an execution; `changes`: its parts, and then its record.
  Status Create(const FlowRecord& record, std::span<const store::Change> changes) {
    // Names are usually new, so one write of everything is tried first.
    const auto written = store_.Write(changes);
    if (written && written->back().applied) return {};
    if (!written && !IsTransient(written.error().code)) return written.error();
    return store::Update(
        store_, kKind, record.execution,
        [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
          // A failed write may have stored the record without its parts.
          const auto parts = changes.first(changes.size() - 1);
          if (!parts.empty()) MUSTER_TRY(store_.Write(parts));
          if (!stored) return changes.back();
          MUSTER_ASSIGN(const FlowRecord other, codec_.Decode(*std::move(stored)));
          const bool same = other.machine == record.machine && other.info.input &&
                            *other.info.input == *record.info.input;
          if (same) return std::nullopt;
          return Error{Code::kConflict,
                       "execution '" + record.execution +
                           "' already exists, with another definition or input",
                       "choose another name"};
        });
  }

  // Retries transient failures until a stop is requested.
  Result<std::string> QueueOf(const std::string& execution, const std::stop_token& stop) {
    while (true) {
      auto stored = LoadRecord(store_, execution);
      if (stored) return std::move(stored->queue);
      if (!IsTransient(stored.error().code)) return stored.error();
      if (!env_.Sleep(options_.idle_wait + env_.Jitter(options_.idle_wait), stop))
        return options_.queue;
    }
  }

  store::Store& store_;
  Env& env_;
  const std::vector<TaskExecutor*> executors_;
  const StatesOptions options_;
  std::unique_ptr<JsonataEngine> jsonata_;
  MachineCache machines_;
  FlowCodec codec_;
  DriverSignals signals_;
};

States::States(store::Store& store, std::vector<TaskExecutor*> executors, StatesOptions options,
               Env& env)
    : impl_(std::make_unique<Impl>(store, std::move(executors), std::move(options), env)) {}
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
  return AnswerCallback(impl_->store(), token, {.output = std::move(json)});
}
Status States::SendTaskFailure(const std::string& token, const std::string& error,
                               const std::string& cause) {
  return AnswerCallback(impl_->store(), token, {.error = error, .cause = cause});
}
Status States::SendTaskHeartbeat(const std::string& token) {
  return BeatCallback(impl_->store(), token);
}
Status States::Work(const std::string& until_done, std::stop_token stop) {
  return impl_->Work(until_done, std::move(stop));
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
