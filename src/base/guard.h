#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "muster/result.h"

namespace muster {

// What our own code does not expect, as an error that says where: "WHAT: WORDS".
Error UnexpectedError(std::string_view what, std::string_view words);

// Logs an exception that has no caller to return to.
void LogUnexpected(std::string_view what, std::string_view words);

// Thrown by the simulator to end a process at once: nothing may catch it on the way.
struct ProcessEnd {};

// What `work` returns, a Result; if it throws, kInternal with the exception's words. For work on
// one of many things, so that a broken one does not take the others down.
template <class Work>
std::invoke_result_t<Work> Guarded(std::string_view what, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& error) {
    return UnexpectedError(what, error.what());
  } catch (const ProcessEnd&) {
    throw;
  } catch (...) {
    return UnexpectedError(what, "an exception without words");
  }
}

// The same at the entry of a thread, where nothing at all may pass: the process would end.
template <class Work>
std::invoke_result_t<Work> GuardedThread(std::string_view what, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& error) {
    return UnexpectedError(what, error.what());
  } catch (...) {
    return UnexpectedError(what, "an exception without words");
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
