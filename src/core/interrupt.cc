#include "core/interrupt.h"

#include <atomic>
#include <utility>

namespace muster {
namespace {

thread_local std::stop_token of_this_thread;
std::atomic<bool> of_all{false};

}  // namespace

InterruptScope::InterruptScope(std::stop_token stop)
    : before_(ExchangeInterrupt(std::move(stop))) {}

InterruptScope::~InterruptScope() { of_this_thread = std::move(before_); }

void InterruptAll() { of_all = true; }

bool Interrupted() { return of_all || of_this_thread.stop_requested(); }

std::stop_token ExchangeInterrupt(std::stop_token stop) {
  return std::exchange(of_this_thread, std::move(stop));
}

}  // namespace muster
