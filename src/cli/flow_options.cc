#include "cli/flow_options.h"

#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <regex>

#include "base/file.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxTransformsBytes = 1024 * 1024;

using Pattern = std::function<bool(const std::string& name)>;

Result<Pattern> ParsePattern(const std::string& text) {
  if (text.size() < 2 || text.front() != '/' || text.back() != '/') {
    return Pattern(
        [text](const std::string& name) { return fnmatch(text.c_str(), name.c_str(), 0) == 0; });
  }
  try {
    const std::regex expression(text.substr(1, text.size() - 2));
    return Pattern(
        [expression](const std::string& name) { return std::regex_search(name, expression); });
  } catch (const std::regex_error& error) {
    return Error{Code::kInvalid, text + " is no regular expression: " + error.what(),
                 "a pattern is a glob like logs-*, or /a regular expression/"};
  }
}

Result<std::vector<Pattern>> ParsePatterns(const std::vector<std::string>& texts) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    MUSTER_ASSIGN(Pattern pattern, ParsePattern(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

bool AnyMatches(const std::vector<Pattern>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const Pattern& pattern) { return pattern(name); });
}

}  // namespace

void AddFlowOptions(CLI::App& command, FlowOptions& options) {
  command.add_option("SOURCE", options.source, "Where documents come from")->required();
  command.add_option("SINK", options.sink, "Where they go")->required();
  command.add_option("--transforms", options.transforms, "What is done to them on the way")
      ->type_name("FILE");
  command
      .add_option("--include", options.include,
                  "Only collections that match: a glob, or /a regular expression/")
      ->type_name("PATTERN");
  command.add_option("--exclude", options.exclude, "No collections that match")
      ->type_name("PATTERN");
  command
      .add_option("--max-docs-per-batch", options.max_docs_per_batch,
                  "Documents that are written together (1000)")
      ->type_name("N")
      ->check(CLI::Range(size_t{1}, size_t{1'000'000}));
  command
      .add_option("--max-bytes-per-batch", options.max_bytes_per_batch,
                  "Bytes of them (8 MiB); a larger document goes alone")
      ->type_name("N")
      ->check(CLI::Range(size_t{1}, size_t{1} << 30));
  command.add_option("--docs-per-second", options.docs_per_second, "No faster than this")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--mb-per-second", options.mb_per_second, "No faster than this")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--dead-letters", options.dead_letters,
                  "Where documents go that cannot be migrated (RUN.dead-letters.jsonl)")
      ->type_name("FILE");
}

Result<CollectionFilter> ParseFilter(const std::vector<std::string>& include,
                                     const std::vector<std::string>& exclude) {
  MUSTER_ASSIGN(const std::vector<Pattern> wanted, ParsePatterns(include));
  MUSTER_ASSIGN(const std::vector<Pattern> unwanted, ParsePatterns(exclude));
  return CollectionFilter([wanted, unwanted](const std::string& name) {
    return (wanted.empty() || AnyMatches(wanted, name)) && !AnyMatches(unwanted, name);
  });
}

Result<std::string> ReadTransforms(const FlowOptions& options) {
  if (options.transforms.empty()) return std::string();
  return ReadFile(options.transforms, kMaxTransformsBytes);
}

Result<std::unique_ptr<Flow>> Flow::Open(const FlowOptions& options, const std::string& run,
                                         Env& env) {
  std::unique_ptr<Flow> flow(new Flow(env));
  MUSTER_ASSIGN(flow->allowed_, ParseFilter(options.include, options.exclude));
  MUSTER_ASSIGN(const std::string text, ReadTransforms(options));
  MUSTER_ASSIGN(flow->transforms_, ParseTransforms(text, options.transforms));
  MUSTER_ASSIGN(flow->source_, OpenSource(options.source, env));
  MUSTER_ASSIGN(flow->sink_, OpenSink(options.sink, env));
  flow->dead_letters_path_ =
      options.dead_letters.empty() ? run + ".dead-letters.jsonl" : options.dead_letters;
  MUSTER_ASSIGN(flow->dead_letters_, OpenDeadLetters(flow->dead_letters_path_, run));
  flow->throttle_.Set(options.docs_per_second, options.mb_per_second * 1e6);
  flow->pipeline_ = std::make_unique<Pipeline>(
      Pipeline{.env = env,
               .source = *flow->source_,
               .transforms = *flow->transforms_,
               .sink = *flow->sink_,
               .dead_letters = *flow->dead_letters_,
               .throttle = flow->throttle_,
               .options = {.limits = {.max_docs = options.max_docs_per_batch,
                                      .max_bytes = options.max_bytes_per_batch}}});
  return flow;
}

}  // namespace muster::cli
