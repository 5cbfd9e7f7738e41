#include "replica/exec_projection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>

#include "core/file.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/process_group.h"
#include "core/sha256.h"
#include "events/events.h"

namespace muster::replica {
namespace {

constexpr size_t kMaxLine = 1024 * 1024;
constexpr size_t kMaxProgram = size_t{256} << 20;
constexpr size_t kWindow = 64;  // events sent to a child ahead of its acknowledgements
constexpr auto kFarewell = std::chrono::seconds(2);  // between closing its stdin and SIGKILL

// A child process and the socket that is its stdin and stdout.
class Child {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  static Result<std::unique_ptr<Child>> Start(const std::vector<std::string>& command,
                                              const Variables& variables, Env& env) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return Error{Code::kUnavailable, "no socket could be made for a child process"};
    }
    Descriptor ours(ends[0]);
    const Descriptor theirs(ends[1]);
    fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    MUSTER_ASSIGN(auto group, ProcessGroup::Make());
    auto pid = group->Start(
        {.command = command, .environment = variables, .in = theirs.get(), .out = theirs.get()});
    if (!pid) {
      // A failed start is never blamed on the events.
      return Error{Code::kUnavailable, pid.error().message, "check the projection's command"};
    }
    return std::unique_ptr<Child>(new Child(std::move(group), *pid, std::move(ours), env));
  }

  ~Child() {
    shutdown(socket_.get(), SHUT_WR);
    const MonoTime give_up = env_.MonoNow() + kFarewell;
    while (waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (env_.MonoNow() >= give_up) {
        Kill();
        waitpid(pid_, nullptr, 0);
        break;
      }
      pollfd entry{socket_.get(), POLLIN, 0};
      poll(&entry, 1, 10);
    }
  }

  void Kill() { group_->Signal(SIGKILL); }

  // Sends what it can of `text` and receives what is available. False: the child closed the socket.
  bool Exchange(std::string_view& text, std::string& received, MonoTime deadline) {
    pollfd entry{socket_.get(), static_cast<short>(text.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - env_.MonoNow());
    if (poll(&entry, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) < 0) {
      return errno == EINTR;
    }
    if ((entry.revents & POLLIN) != 0) {
      char bytes[16 * 1024];
      const ssize_t got = recv(socket_.get(), bytes, sizeof bytes, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (got > 0) received.append(bytes, static_cast<size_t>(got));
    } else if ((entry.revents & (POLLHUP | POLLERR)) != 0) {
      return false;
    }
    if ((entry.revents & POLLOUT) != 0 && !text.empty()) {
      const ssize_t sent = send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

 private:
  Child(std::unique_ptr<ProcessGroup> group, pid_t pid, Descriptor socket, Env& env)
      : group_(std::move(group)), pid_(pid), socket_(std::move(socket)), env_(env) {}

  const std::unique_ptr<ProcessGroup> group_;
  const pid_t pid_;
  const Descriptor socket_;
  Env& env_;
};

class ExecProcessor final : public Processor {
 public:
  ExecProcessor(const ExecProjectionSpec& spec, const ReplicaPartition& partition, Env& env)
      : spec_(spec),
        env_(env),
        variables_{{"MUSTER_PROJECTION", spec.name},
                   {"MUSTER_PARTITION_KEY", std::to_string(partition.key)},
                   {"MUSTER_TOTAL_PARTITIONS", std::to_string(partition.total)},
                   {"MUSTER_GENERATION", std::to_string(partition.generation)},
                   {"MUSTER_VERSION", std::to_string(partition.version)},
                   {"MUSTER_SIDE_EFFECTS", partition.side_effects ? "1" : "0"}} {}

  Status Handle(std::span<const events::Event> events, Transaction&) override {
    size_t done = 0;
    Status talked = Talk(events, nullptr, done);
    if (!talked) KillChild();
    return talked;
  }

  // Events acknowledged before a failure count; the failing event comes again, first.
  Result<size_t> HandleSome(std::span<const events::Event> events, Transaction&,
                            Turn& turn) override {
    size_t done = 0;
    const Status talked = Talk(events, &turn, done);
    if (!talked) KillChild();
    if (!talked && done == 0) return talked.error();
    return done;
  }

 private:
  // The child's state is unknown: a new one starts clean.
  void KillChild() {
    if (child_) child_->Kill();
    child_.reset();
  }

  // Sends events and counts acknowledged ones in `done`. Once its turn is over it stops sending and
  // waits for the outstanding acknowledgements.
  Status Talk(std::span<const events::Event> events, Turn* turn, size_t& done) {
    if (!child_) {
      MUSTER_ASSIGN(child_, Child::Start(spec_.command, variables_, env_));
      received_.clear();
      lowest_sent_ = INT64_MAX;
      highest_sent_ = 0;
    }
    std::string lines;
    std::string_view unsent;
    size_t sent = 0;
    MonoTime deadline = env_.MonoNow() + spec_.timeout;
    for (;;) {
      MUSTER_ASSIGN(const bool answered, TakeAnswers(events.first(sent), done));
      if (answered) {
        deadline = env_.MonoNow() + spec_.timeout;
        if (turn != nullptr) turn->Progress();
      }
      const bool over = turn != nullptr && sent > 0 && turn->Over();
      if (done == events.size() || (over && done == sent)) return {};
      if (!over && unsent.empty() && sent < events.size() && sent - done <= kWindow / 2) {
        lines.clear();
        for (; sent < events.size() && sent - done < kWindow; ++sent) {
          lines += events::EventToJson(events[sent]) + "\n";
          lowest_sent_ = std::min(lowest_sent_, events[sent].position);
          highest_sent_ = std::max(highest_sent_, events[sent].position);
        }
        unsent = lines;
      }
      if (received_.size() > kMaxLine) return Failed("sent a line that is too long");
      if (env_.MonoNow() >= deadline) {
        return Failed("did not answer within " + std::to_string(spec_.timeout.count()) + " ms");
      }
      if (!child_->Exchange(unsent, received_, deadline)) {
        return Failed("ended without acknowledging position " +
                      std::to_string(events[done].position));
      }
    }
  }

  // Advances `done` by the acknowledgements received for `sent`. False: none received.
  Result<bool> TakeAnswers(std::span<const events::Event> sent, size_t& done) {
    bool answered = false;
    for (size_t end; (end = received_.find('\n')) != std::string::npos;) {
      const auto position = AnswerFrom(received_.substr(0, end));
      // Acknowledgements before an error count first; the error is seen again next time.
      if (!position && answered) return true;
      received_.erase(0, end + 1);
      if (!position) return position.error();
      answered = true;
      // A duplicate acknowledgement says nothing about events sent since.
      for (size_t i = done; i < sent.size(); ++i) {
        if (sent[i].position == *position) done = i + 1;
      }
    }
    return answered;
  }

  Result<int64_t> AnswerFrom(const std::string& line) const {
    const Json json = Json::parse(line, nullptr, /*throws=*/false);
    if (json.is_object() && json.contains("error") && json["error"].is_string()) {
      return Failed("says: " + json["error"].get<std::string>());
    }
    if (!json.is_object() || !json.contains("ack") || !json["ack"].is_number_integer()) {
      return Failed("replied with something other than an acknowledgement: " + line.substr(0, 200));
    }
    const auto position = json["ack"].get<int64_t>();
    if (position < lowest_sent_ || position > highest_sent_) {
      return Failed("acknowledged position " + std::to_string(position) +
                    ", which it was not sent");
    }
    return position;
  }

  Error Failed(const std::string& how) const {
    return {Code::kInternal, "the child of projection '" + spec_.name + "' " + how};
  }

  const ExecProjectionSpec spec_;
  Env& env_;
  const Child::Variables variables_;
  std::unique_ptr<Child> child_;
  std::string received_;
  int64_t lowest_sent_ = INT64_MAX;  // of the positions sent to this child
  int64_t highest_sent_ = 0;
};

class ExecProjection final : public Projection {
 public:
  ExecProjection(const ExecProjectionSpec& spec, Env& env) : spec_(spec), env_(env) {}
  const std::string& name() const override { return spec_.name; }
  Result<std::unique_ptr<Processor>> Build(const ReplicaPartition& partition) override {
    MUSTER_TRY(CheckProgram());
    return std::make_unique<ExecProcessor>(spec_, partition, env_);
  }
  std::string Definition() const override {
    Json definition{{"exec", spec_.command}};
    if (!spec_.program.empty()) {
      definition["program"] = {{"file", spec_.program}, {"sha256", spec_.sha256}};
    }
    return ToJsonText(definition);
  }
  Result<std::shared_ptr<Projection>> WithDefinition(const std::string& definition) const override {
    ExecProjectionSpec spec = spec_;
    JsonFields fields(Json::parse(definition, nullptr, /*throws=*/false));
    fields.Need("exec", spec.command);
    std::map<std::string, std::string> program;
    fields.Read("program", program);
    MUSTER_TRY(fields.Check("the definition of projection '" + spec_.name + "'"));
    spec.program = program["file"];
    spec.sha256 = program["sha256"];
    return NewExecProjection(spec, env_);
  }
  // We cannot see the child's state: all we can do is replay from the start.
  Status Clear(Transaction&, int) override { return {}; }

 private:
  // Unlike statements, the program that a version was built with is not in the store: another one
  // must not pass for it.
  Status CheckProgram() const {
    if (spec_.program.empty()) return {};
    MUSTER_ASSIGN(const std::string content, ReadFile(spec_.program, kMaxProgram));
    if (Sha256Hex(content) == spec_.sha256) return {};
    return Error{Code::kConflict,
                 "projection '" + spec_.name + "': " + spec_.program +
                     " is not the program that this version was built with: 'muster replica adopt' "
                     "takes it as it is now, and a rebuild then handles all events by it"};
  }

  const ExecProjectionSpec spec_;
  Env& env_;
};

bool IsIn(const std::filesystem::path& folder, const std::filesystem::path& file) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return false;
  const auto inside = std::filesystem::canonical(file, failed).parent_path();
  if (failed) return false;
  const auto outside = std::filesystem::canonical(folder, failed);
  if (failed) return false;
  return std::mismatch(outside.begin(), outside.end(), inside.begin(), inside.end()).first ==
         outside.end();
}

}  // namespace

Status FindProgram(const std::string& folder, ExecProjectionSpec& spec) {
  for (const std::string& word : spec.command) {
    // A bare command is looked up in PATH.
    const bool is_bare = &word == spec.command.data() && word.find('/') == std::string::npos;
    if (is_bare || !IsIn(folder.empty() ? "." : folder, word)) continue;
    MUSTER_ASSIGN(const std::string content, ReadFile(word, kMaxProgram));
    spec.program = word;
    spec.sha256 = Sha256Hex(content);
    return {};
  }
  return {};
}

Result<std::shared_ptr<Projection>> NewExecProjection(const ExecProjectionSpec& spec, Env& env) {
  if (spec.command.empty()) {
    return Error{Code::kInvalid, "projection '" + spec.name + "' has an empty command"};
  }
  return std::make_shared<ExecProjection>(spec, env);
}

}  // namespace muster::replica
