#include "cli/flow.h"

#include <algorithm>

#include "pipeline/pipeline.h"

namespace muster::cli {
namespace {

// A sink that creates nothing: its targets exist, and are used as they are.
class ExistingTargets final : public pipeline::SinkWrapper {
 public:
  using SinkWrapper::SinkWrapper;

  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& collection,
                                                      bool evaluate) override {
    MUSTER_ASSIGN(const auto changes, SinkWrapper::Prepare(collection, true));
    if (changes.empty()) return SinkWrapper::Prepare(collection, evaluate);
    return Error{
        Code::kNotFound,
        "the sink has no target for " + collection.name +
            ", and with --documents-only none is created",
        "create it first, for search clusters with 'muster metadata migrate', or leave out "
        "--documents-only"};
  }
  Result<std::vector<pipeline::TargetChange>> PrepareGlobal(const std::string& /*metadata*/,
                                                            bool /*evaluate*/) override {
    return std::vector<pipeline::TargetChange>();
  }
};

}  // namespace

Result<std::unique_ptr<Flow>> Flow::Open(const PipelineSettings& settings, const std::string& run,
                                         const std::string& dead_letters, Env& env,
                                         Metrics* metrics) {
  std::unique_ptr<Flow> flow(new Flow(env));
  MUSTER_ASSIGN(flow->allowed_, FilterOf(settings.collections));
  MUSTER_ASSIGN(flow->transforms_, LoadTransforms(settings));
  MUSTER_ASSIGN(flow->limits_, LimitsWatcher::Start(settings, flow->throttle_, env));
  MUSTER_ASSIGN(flow->source_, pipeline::OpenSource(settings.source, env));
  MUSTER_ASSIGN(flow->opened_, pipeline::OpenSink(settings.sink, env));
  if (settings.documents_only) flow->existing_ = std::make_unique<ExistingTargets>(*flow->opened_);
  flow->sink_ = flow->existing_ ? flow->existing_.get() : flow->opened_.get();
  flow->dead_letters_path_ = settings.dead_letters.empty() ? dead_letters : settings.dead_letters;
  MUSTER_ASSIGN(flow->dead_letters_, pipeline::OpenDeadLetters(flow->dead_letters_path_, run));
  if (metrics != nullptr)
    flow->metered_ = pipeline::NewMeteredSink(*flow->sink_, run, *metrics, env);
  const pipeline::BatchLimits preferred = flow->sink_->PreferredLimits();
  flow->pipeline_ = std::make_unique<pipeline::Pipeline>(pipeline::Pipeline{
      .env = env,
      .source = *flow->source_,
      .transforms = *flow->transforms_,
      .sink = flow->metered_ ? *flow->metered_ : *flow->sink_,
      .dead_letters = *flow->dead_letters_,
      .throttle = flow->throttle_,
      .options = {
          .limits = {.max_docs = settings.max_docs_per_batch.value_or(preferred.max_docs),
                     .max_bytes = settings.max_bytes_per_batch.value_or(preferred.max_bytes)},
          .merge = settings.merge}});
  return flow;
}

std::optional<std::string> Flow::NothingSelected() {
  const auto collections = source_->Collections();
  if (!collections) return std::nullopt;
  if (collections->empty()) return "The source has no collections.";
  const bool any = std::any_of(collections->begin(), collections->end(),
                               [&](const pipeline::Collection& one) { return allowed_(one.name); });
  if (any) return std::nullopt;
  return "None of the source's " + std::to_string(collections->size()) +
         " collections is included.";
}

}  // namespace muster::cli
