#include "cli/pipeline_settings.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "cli/command.h"
#include "core/file.h"
#include "core/guard.h"
#include "core/log.h"
#include "core/number.h"
#include "core/regex.h"
#include "core/yaml.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr auto kLookAgain = std::chrono::seconds(1);
constexpr double kMegabyte = 1e6;

struct Limits {
  double docs_per_second = 0;
  double mb_per_second = 0;

  bool operator==(const Limits&) const = default;
};

Result<double> NumberAt(const YamlDocument& document, const YamlNode& node) {
  const auto number = ParseNumber<double>(node.text);
  if (!number || *number < 0) return document.At(node, "expected a number of at least 0");
  return *number;
}

Result<Limits> ReadLimits(const std::string& path, Limits limits) {
  MUSTER_ASSIGN(const YamlDocument document, ReadYamlFile(path));
  if (document.root.kind != YamlNode::Kind::kMap && document.root.kind != YamlNode::Kind::kNull) {
    return document.At(document.root, "expected a map of docs_per_second and mb_per_second");
  }
  for (const YamlEntry& entry : document.root.entries) {
    if (entry.key.text == "docs_per_second") {
      MUSTER_ASSIGN(limits.docs_per_second, NumberAt(document, entry.value));
    } else if (entry.key.text == "mb_per_second") {
      MUSTER_ASSIGN(limits.mb_per_second, NumberAt(document, entry.value));
    } else {
      return document.At(entry.key, "only docs_per_second and mb_per_second are allowed");
    }
  }
  return limits;
}

Result<std::vector<Pattern>> PatternsOf(const std::vector<std::string>& texts) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    MUSTER_ASSIGN(Pattern pattern, Pattern::Parse(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

bool AnyMatches(const std::vector<Pattern>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const Pattern& pattern) { return pattern.Matches(name); });
}

}  // namespace

void AddCollectionOptions(Command& command, CollectionPatterns& patterns) {
  command
      .AddOption(
          "--include", patterns.include,
          "Collections to include: a name, a glob, or /a regular expression/; all by default")
      .TypeName("PATTERN")
      .OneValuePerUse();
  command.AddOption("--exclude", patterns.exclude, "Collections to exclude")
      .TypeName("PATTERN")
      .OneValuePerUse();
}

void AddPipelineOptions(Command& command, PipelineSettings& settings) {
  command.AddOption("SOURCE", settings.source, "Where documents come from, a URL").Required();
  command.AddOption("SINK", settings.sink, "Where they go, a URL").Required();
  command.AddOption("--transforms", settings.transforms, "Transforms, a YAML file")
      .TypeName("FILE");
  AddCollectionOptions(command, settings.collections);
  command.AddFlag("--merge", settings.merge,
                  "Let several collections share a target: their ids differ");
  command.AddFlag("--documents-only", settings.documents_only,
                  "Create nothing in the sink: the targets exist already");
  command
      .AddOption("--max-docs-per-batch", settings.max_docs_per_batch,
                 "Documents per batch; 1000 by default, 10000 for tables")
      .Range(size_t{1}, size_t{1'000'000})
      .TypeName("N");
  command
      .AddOption("--max-bytes-per-batch", settings.max_bytes_per_batch,
                 "Bytes per batch, 8 MiB by default; a larger document gets its own batch")
      .Bytes()
      .Range(size_t{1}, size_t{1} << 30)
      .TypeName("SIZE");
  command.AddOption("--docs-per-second", settings.docs_per_second, "Rate limit; 0: none")
      .NonNegative()
      .TypeName("N");
  command.AddOption("--mb-per-second", settings.mb_per_second, "Rate limit; 0: none")
      .NonNegative()
      .TypeName("N");
  command
      .AddOption("--limits", settings.limits_file,
                 "A YAML file with docs_per_second and mb_per_second, reread every second")
      .TypeName("FILE");
  command
      .AddOption(
          "--max-failures", settings.max_failures,
          "Stop when more documents than this have failed: a number, or a percentage of those "
          "read, from 1000 documents on; by default 50%. Counted after each batch, so the rest of "
          "a batch is still written")
      .TypeName("N|P%");
  command
      .AddOption("--dead-letters", settings.dead_letters,
                 "Where to put documents that cannot be migrated; by default dead-letters.jsonl, a "
                 "worker's RUN.dead-letters.jsonl")
      .TypeName("FILE");
}

Result<std::string> ReadTransforms(const PipelineSettings& settings) {
  if (settings.transforms.empty()) return std::string();
  return ReadFile(settings.transforms, kMaxFileBytes);
}

Result<std::unique_ptr<pipeline::TransformPlan>> LoadTransforms(const PipelineSettings& settings) {
  MUSTER_ASSIGN(const std::string text, ReadTransforms(settings));
  return pipeline::ParseTransforms(text, settings.transforms);
}

std::string AddedText(int64_t added) {
  return std::to_string(added) + (added == 1 ? " document was" : " documents were") +
         " added by scripts";
}

Result<std::optional<work::FailureLimit>> LimitOf(const PipelineSettings& settings) {
  if (settings.max_failures.empty()) return std::nullopt;
  auto limit = work::FailureLimit::Parse(settings.max_failures);
  if (!limit) return limit.error().Within("--max-failures");
  return *limit;
}

std::string SelectionOf(const PipelineSettings& settings) {
  std::string words;
  for (const auto& [option, patterns] : {std::pair{"--include ", &settings.collections.include},
                                         std::pair{"--exclude ", &settings.collections.exclude}}) {
    // Order does not matter.
    for (const std::string& pattern : std::set(patterns->begin(), patterns->end())) {
      words += (words.empty() ? "" : " ") + (option + pattern);
    }
  }
  return words;
}

Result<pipeline::CollectionFilter> FilterOf(const CollectionPatterns& patterns) {
  MUSTER_ASSIGN(auto include, PatternsOf(patterns.include));
  MUSTER_ASSIGN(auto exclude, PatternsOf(patterns.exclude));
  return [include = std::move(include), exclude = std::move(exclude)](const std::string& name) {
    return (include.empty() || AnyMatches(include, name)) && !AnyMatches(exclude, name);
  };
}

class LimitsWatcher::Impl {
 public:
  Impl(const PipelineSettings& settings, pipeline::Throttle& throttle, Env& env)
      : path_(settings.limits_file),
        options_{settings.docs_per_second, settings.mb_per_second},
        throttle_(throttle),
        env_(env) {
    Set(options_);
  }

  // A run that ignored its limits would overload what they protect.
  Status Start() {
    if (path_.empty()) return {};
    MUSTER_ASSIGN(const Limits limits, Read());
    Change(limits);
    thread_ = std::jthread([this](std::stop_token stop) {
      while (env_.Sleep(kLookAgain, stop)) LogThrown(path_, [this] { Look(); });
    });
    return {};
  }

 private:
  Result<Limits> Read() const {
    std::error_code failed;
    if (!std::filesystem::exists(path_, failed)) return options_;
    return ReadLimits(path_, options_);
  }

  void Look() {
    const Result<Limits> limits = Read();
    if (!limits) {
      const std::string problem = limits.error().ToString();
      if (problem != problem_) Log(Level::kWarning, "limits not changed", {{"error", problem}});
      problem_ = problem;
      return;
    }
    problem_.clear();
    Change(*limits);
  }

  void Change(const Limits& limits) {
    if (limits == current_) return;
    Set(limits);
    Log(Level::kInfo, "limits changed",
        {{"docs_per_second", limits.docs_per_second}, {"mb_per_second", limits.mb_per_second}});
  }

  void Set(const Limits& limits) {
    current_ = limits;
    throttle_.Set(limits.docs_per_second, limits.mb_per_second * kMegabyte);
  }

  const std::string path_;
  const Limits options_;
  pipeline::Throttle& throttle_;
  Env& env_;
  Limits current_;
  std::string problem_;  // last one logged
  std::jthread thread_;
};

Result<std::unique_ptr<LimitsWatcher>> LimitsWatcher::Start(const PipelineSettings& settings,
                                                            pipeline::Throttle& throttle,
                                                            Env& env) {
  auto impl = std::make_unique<Impl>(settings, throttle, env);
  MUSTER_TRY(impl->Start());
  return std::unique_ptr<LimitsWatcher>(new LimitsWatcher(std::move(impl)));
}

LimitsWatcher::LimitsWatcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LimitsWatcher::~LimitsWatcher() = default;

}  // namespace muster::cli
