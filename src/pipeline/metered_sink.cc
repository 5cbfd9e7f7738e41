#include "pipeline/metered_sink.h"

namespace muster {
namespace {

struct SinkMeters {
  SinkMeters(Metrics& all, const std::string& run)
      : metrics(all),
        seconds(all.GetHistogram("muster_sink_write_seconds", "How long the sink takes for a batch",
                                 {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10},
                                 {{"run", run}})),
        refused(all.GetCounter("muster_sink_refused_total", "Documents that the sink refused")),
        fenced(all.GetCounter("muster_sink_fenced_total",
                              "Writes that came too late: another holder has the item")) {}

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

class MeteredWriter final : public Writer {
 public:
  MeteredWriter(std::unique_ptr<Writer> writer, std::shared_ptr<const SinkMeters> meters, Env& env)
      : writer_(std::move(writer)), meters_(std::move(meters)), env_(env) {}

  const std::optional<Progress>& Known() const override { return writer_->Known(); }
  bool Sealed() const override { return writer_->Sealed(); }
  bool RecordsRefusals(RefusalRecorder record) override {
    return writer_->RecordsRefusals(std::move(record));
  }
  Status Flush() override { return writer_->Flush(); }
  Result<std::optional<Progress>> Seal() override { return writer_->Seal(); }
  Status Finish() override { return writer_->Finish(); }

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override {
    const MonoTime start = env_.MonoNow();
    auto refused = writer_->Write(batch, after, patience);
    meters_->seconds.Observe(std::chrono::duration<double>(env_.MonoNow() - start).count());
    if (refused) {
      meters_->refused.Add(static_cast<double>(refused->size()));
    } else {
      meters_->CountError(refused.error());
    }
    return refused;
  }

 private:
  const std::unique_ptr<Writer> writer_;
  const std::shared_ptr<const SinkMeters> meters_;
  Env& env_;
};

class MeteredSink final : public Sink {
 public:
  MeteredSink(Sink& sink, const std::string& run, Metrics& metrics, Env& env)
      : sink_(sink), meters_(std::make_shared<const SinkMeters>(metrics, run)), env_(env) {}

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    return sink_.Prepare(collection, evaluate);
  }
  Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata,
                                                  bool evaluate) override {
    return sink_.PrepareGlobal(metadata, evaluate);
  }
  bool CanDelete() const override { return sink_.CanDelete(); }
  bool ReplacesById(const Collection& collection) const override {
    return sink_.ReplacesById(collection);
  }
  std::string Place(const std::string& collection) const override {
    return sink_.Place(collection);
  }
  Result<std::string> Identity(const std::string& collection) override {
    return sink_.Identity(collection);
  }
  BatchLimits PreferredLimits() const override { return sink_.PreferredLimits(); }
  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override {
    auto writer = sink_.Open(collection, fence);
    if (!writer) {
      meters_->CountError(writer.error());
      return writer;
    }
    return std::make_unique<MeteredWriter>(*std::move(writer), meters_, env_);
  }
  Status Finish(const std::string& collection) override { return sink_.Finish(collection); }

 private:
  Sink& sink_;
  const std::shared_ptr<const SinkMeters> meters_;
  Env& env_;
};

}  // namespace

std::unique_ptr<Sink> NewMeteredSink(Sink& sink, const std::string& run, Metrics& metrics,
                                     Env& env) {
  return std::make_unique<MeteredSink>(sink, run, metrics, env);
}

}  // namespace muster
