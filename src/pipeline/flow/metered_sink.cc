#include "pipeline/flow/metered_sink.h"

#include "pipeline/flow/wrappers.h"

namespace muster::pipeline {
namespace {

struct SinkMeters {
  SinkMeters(Metrics& all, const std::string& run)
      : metrics(all),
        seconds(all.GetHistogram("muster_sink_write_seconds", "How long the sink takes for a batch",
                                 {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10},
                                 {{"run", run}})),
        refused(all.GetCounter("muster_sink_refused_total", "Documents that the sink refused")),
        fenced(all.GetCounter("muster_sink_fenced_total",
                              "Fenced writes: another holder has the item")) {}

  void CountError(const Error& error) const {
    if (error.code == Code::kLeaseLost) fenced.Add();
    metrics
        .GetCounter("muster_sink_errors_total", "Writes that failed, by code",
                    {{"code", std::string(CodeName(error.code))}})
        .Add();
  }

  Metrics& metrics;
  const Metrics::Histogram seconds;
  const Metrics::Counter refused;
  const Metrics::Counter fenced;
};

class MeteredWriter final : public WriterWrapper {
 public:
  MeteredWriter(std::unique_ptr<Writer> writer, std::shared_ptr<const SinkMeters> meters, Env& env)
      : WriterWrapper(std::move(writer)), meters_(std::move(meters)), env_(env) {}

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override {
    const MonoTime start = env_.MonoNow();
    auto refused = WriterWrapper::Write(batch, after, patience);
    meters_->seconds.Observe(std::chrono::duration<double>(env_.MonoNow() - start).count());
    if (refused) {
      meters_->refused.Add(static_cast<double>(refused->size()));
    } else {
      meters_->CountError(refused.error());
    }
    return refused;
  }

 private:
  const std::shared_ptr<const SinkMeters> meters_;
  Env& env_;
};

class MeteredSink final : public SinkWrapper {
 public:
  MeteredSink(Sink& sink, const std::string& run, Metrics& metrics, Env& env)
      : SinkWrapper(sink), meters_(std::make_shared<const SinkMeters>(metrics, run)), env_(env) {}

  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override {
    auto writer = SinkWrapper::Open(collection, fence);
    if (!writer) {
      meters_->CountError(writer.error());
      return writer;
    }
    return std::make_unique<MeteredWriter>(*std::move(writer), meters_, env_);
  }

 private:
  const std::shared_ptr<const SinkMeters> meters_;
  Env& env_;
};

}  // namespace

std::unique_ptr<Sink> NewMeteredSink(Sink& sink, const std::string& run, Metrics& metrics,
                                     Env& env) {
  return std::make_unique<MeteredSink>(sink, run, metrics, env);
}

}  // namespace muster::pipeline
