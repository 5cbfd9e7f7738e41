#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "muster/result.h"

namespace muster {

// An unexpected failure in our own code, as an error that says where: "WHAT: WORDS".
Error UnexpectedError(std::string_view what, std::string_view words);

// Logs an exception that has no caller to return to.
void LogUnexpected(std::string_view what, std::string_view words);

// Thrown by the simulator to end a process at once: must not be caught on the way.
struct ProcessEnd {};

// The Result of `work`; if it throws, kInternal with the exception's message. For work on one of
// many things, so that a broken one does not bring down the others.
template <class Work>
std::invoke_result_t<Work> Guarded(std::string_view what, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& error) {
    return UnexpectedError(what, error.what());
  } catch (const ProcessEnd&) {
    throw;
  } catch (...) {
    return UnexpectedError(what, "an exception without a message");
  }
}

// The same at a thread's entry, where an escaping exception would end the process.
template <class Work>
std::invoke_result_t<Work> GuardedThread(std::string_view what, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& error) {
    return UnexpectedError(what, error.what());
  } catch (...) {
    return UnexpectedError(what, "an exception without a message");
  }
}

// For a detached thread: an exception is logged. False: it threw.
template <class Work>
bool LogThrown(std::string_view what, Work&& work) {
  const Status done = GuardedThread(what, [&]() -> Status {
    std::forward<Work>(work)();
    return {};
  });
  if (!done) LogUnexpected(what, done.error().message);
  return done.has_value();
}

}  // namespace muster
