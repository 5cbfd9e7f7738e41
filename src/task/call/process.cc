#include "task/call/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

#include "core/process_group.h"

namespace muster::task {
namespace {

using std::chrono::milliseconds;

constexpr size_t kErrorEnd = 4096;
constexpr size_t kMaxLine = 4096;
constexpr milliseconds kTick{100};

// Splits a stream into lines.
class Lines {
 public:
  explicit Lines(const std::function<void(std::string_view)>& log) : log_(log) {}
  ~Lines() {
    if (!line_.empty()) log_(line_);
  }
  void Add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n') line_ += c;
      if (c == '\n' || line_.size() >= kMaxLine) {
        log_(line_);
        line_.clear();
      }
    }
  }

 private:
  const std::function<void(std::string_view)>& log_;
  std::string line_;
};

// Writing to a program that no longer reads must fail with EPIPE instead of killing this process.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    constexpr timespec kNow{0, 0};
    while (sigtimedwait(&pipe_, nullptr, &kNow) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

class Running {
 public:
  Running(const ProcessSpec& spec, Env& env, const ProcessGroup& group, pid_t pid, Descriptor in,
          Descriptor out, Descriptor err)
      : spec_(spec),
        env_(env),
        group_(group),
        pid_(pid),
        ended_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
        in_(std::move(in)),
        out_(std::move(out)),
        err_(std::move(err)),
        lines_(spec.log) {}

  ProcessResult Finish(const std::stop_token& stop) {
    const WithoutSigpipe quietly;
    for (const Descriptor* end : {&in_, &out_, &err_}) fcntl(end->get(), F_SETFL, O_NONBLOCK);
    if (spec_.input.empty()) in_.Close();
    while (!HasEnded()) {
      if (stop.stop_requested() || result_.overflowed) End();
      Exchange(kTick);
    }
    // Background processes it left may hold the pipes open: do not wait for them.
    group_.Signal(SIGKILL);
    Reap();
    while (Exchange(milliseconds(0))) {
    }
    return std::move(result_);
  }

 private:
  bool HasEnded() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  void Reap() {
    int status = 0;
    waitpid(pid_, &status, 0);
    if (WIFSIGNALED(status)) {
      result_.signal = WTERMSIG(status);
    } else {
      result_.exit_code = WEXITSTATUS(status);
    }
  }

  void End() {
    const MonoTime now = env_.MonoNow();
    if (!asked_) {
      asked_ = now;
      group_.Signal(SIGTERM);
    } else if (now - *asked_ >= spec_.grace) {
      group_.Signal(SIGKILL);
    }
  }

  // Transfers what is ready. False: nothing was read.
  bool Exchange(milliseconds wait) {
    std::array<pollfd, 4> ends = {pollfd{in_.get(), POLLOUT, 0}, pollfd{out_.get(), POLLIN, 0},
                                  pollfd{err_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
    if (poll(ends.data(), ends.size(), static_cast<int>(wait.count())) <= 0) return false;
    if (ends[0].revents != 0) Write();
    bool moved = false;
    if (ends[1].revents != 0) {
      moved = Read(out_, [&](std::string_view bytes) {
        const size_t room = spec_.max_output_bytes - result_.output.size();
        result_.output += bytes.substr(0, room);
        if (bytes.size() > room) result_.overflowed = true;
      });
    }
    if (ends[2].revents != 0) {
      moved = Read(err_,
                   [&](std::string_view bytes) {
                     lines_.Add(bytes);
                     result_.error_end += bytes;
                     if (result_.error_end.size() > kErrorEnd) {
                       result_.error_end.erase(0, result_.error_end.size() - kErrorEnd);
                     }
                   }) ||
              moved;
    }
    return moved;
  }

  void Write() {
    const std::string_view rest = std::string_view(spec_.input).substr(written_);
    const ssize_t count = write(in_.get(), rest.data(), rest.size());
    if (count > 0) written_ += static_cast<size_t>(count);
    const bool broken = count < 0 && errno != EAGAIN && errno != EINTR;
    // A program need not read all of its input.
    if (broken || written_ == spec_.input.size()) in_.Close();
  }

  template <class Take>
  static bool Read(Descriptor& from, Take take) {
    std::array<char, 16384> buffer;
    const ssize_t count = read(from.get(), buffer.data(), buffer.size());
    if (count > 0) {
      take(std::string_view(buffer.data(), static_cast<size_t>(count)));
      return true;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) from.Close();
    return false;
  }

  const ProcessSpec& spec_;
  Env& env_;
  const ProcessGroup& group_;
  const pid_t pid_;
  Descriptor ended_;  // readable once the program has ended
  Descriptor in_;
  Descriptor out_;
  Descriptor err_;
  Lines lines_;
  size_t written_ = 0;
  std::optional<MonoTime> asked_;  // when it got SIGTERM
  ProcessResult result_;
};

}  // namespace

Result<ProcessResult> RunProcess(const ProcessSpec& spec, Env& env, const std::stop_token& stop) {
  MUSTER_ASSIGN(Pipe in, MakePipe());
  MUSTER_ASSIGN(Pipe out, MakePipe());
  MUSTER_ASSIGN(Pipe err, MakePipe());
  MUSTER_ASSIGN(const auto group, ProcessGroup::Make());
  MUSTER_ASSIGN(const pid_t pid, group->Start({.command = spec.command,
                                               .environment = spec.environment,
                                               .directory = spec.directory,
                                               .in = in.read.get(),
                                               .out = out.write.get(),
                                               .err = err.write.get()}));
  in.read.Close();
  out.write.Close();
  err.write.Close();
  return Running(spec, env, *group, pid, std::move(in.write), std::move(out.read),
                 std::move(err.read))
      .Finish(stop);
}

}  // namespace muster::task
