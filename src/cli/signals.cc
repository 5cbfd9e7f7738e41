#include "cli/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/exit_codes.h"
#include "core/interrupt.h"

namespace muster::cli {
namespace {

// Time to drain before remaining network waits are interrupted.
constexpr std::chrono::milliseconds kPatience{2'000};

// Used by the handler: lock-free, and set before it is installed.
std::atomic<int> wake_fd{-1};
std::atomic<int> signals_seen{0};
static_assert(std::atomic<int>::is_always_lock_free);

// Requesting a stop takes locks, which a handler must not: a thread does it, woken through a pipe.
extern "C" void OnStopSignal(int signal) {
  // A closing terminal may send SIGHUP twice, by the kernel and by the shell.
  if (signal != SIGHUP && signals_seen.fetch_add(1) > 0) _exit(kInterrupted);
  const int saved_errno = errno;
  const char byte = 's';
  [[maybe_unused]] ssize_t written = write(wake_fd, &byte, 1);
  errno = saved_errno;
}

void Install() {
  struct sigaction action {};
  action.sa_handler = OnStopSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Under nohup the command outlives its terminal.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

StopOnSignals::StopOnSignals(std::string notice) {
  if (wake_fd != -1 || pipe2(wake_, O_CLOEXEC) != 0) {
    std::perror("muster: bug: cannot watch for signals");
    std::abort();
  }
  signals_seen = 0;
  wake_fd = wake_[1];
  waiter_ = std::thread([this, notice = std::move(notice)] {
    char byte = 0;
    ssize_t got = 0;
    while ((got = read(wake_[0], &byte, 1)) < 0 && errno == EINTR) {
    }
    if (got != 1 || byte != 's') return;
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, notice.data(), notice.size());
    stop_.request_stop();
    if (!EndsWithin(kPatience)) InterruptAll();
  });
  Install();
}

// Whether the command ends in time. Meanwhile a further signal ends the process without waking this
// thread.
bool StopOnSignals::EndsWithin(std::chrono::milliseconds time) const {
  pollfd entry{wake_[0], POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + time;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = poll(&entry, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    char byte = 0;
    if (ready > 0 && read(wake_[0], &byte, 1) == 1 && byte == 'q') return true;
    if (ready == 0) return false;
  }
}

// The handler stays: see the header.
StopOnSignals::~StopOnSignals() {
  wake_fd = -1;
  const char byte = 'q';
  [[maybe_unused]] ssize_t written = write(wake_[1], &byte, 1);
  waiter_.join();
  close(wake_[0]);
  close(wake_[1]);
}

}  // namespace muster::cli
