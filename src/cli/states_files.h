#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "cli/context.h"
#include "muster/result.h"
#include "states/states.h"

namespace muster::cli {

struct StatesCommandOptions {
  std::string action;
  std::vector<std::string> arguments;
  std::string input;
  std::string mocks;
  std::string test_case;
  std::string name;
  std::string error;
  std::string cause;
  bool virtual_time = false;
  int threads = 4;
  int limit = 1'000;
};

inline constexpr size_t kMaxDefinitionBytes = 16 * 1024 * 1024;

// The name of a state machine: its file's, up to the first dot.
std::string MachineName(const std::string& path);

// The text of --input; {} by default.
Result<std::string> ReadStatesInput(const StatesCommandOptions& options);

// Drives executions with --threads threads, until a stop or until one has ended.
Status WorkInThreads(states::States& states, int threads, const std::stop_token& stop,
                     const std::string& until_done);

// The actions that need no store: each reads files, and returns the exit code.
class StatesFiles {
 public:
  // All must outlive it.
  StatesFiles(const StatesCommandOptions& options, Context& context, states::TaskExecutor& executor)
      : options_(options), context_(context), executor_(executor) {}

  Result<int> Check();
  Result<int> Run();
  Result<int> Test();

 private:
  // Of `states test`.
  struct Score {
    int64_t cases = 0;
    int64_t passed = 0;
    int64_t outcomes = 0;
    int64_t causes = 0;
    int64_t events = 0;
  };

  const std::string& argument() const { return options_.arguments.front(); }
  Result<int> RunMocked(const std::string& definition, Json input);
  Result<int> RunDurably(const std::string& definition, const std::string& input);
  Result<int> Report(states::ExecutionStatus status, const Json& output, const std::string& error,
                     const std::string& cause, const Json& events);
  Status TestFile(const std::string& path, states::JsonataEngine* jsonata, Score& score);

  const StatesCommandOptions& options_;
  Context& context_;
  states::TaskExecutor& executor_;
};

}  // namespace muster::cli
