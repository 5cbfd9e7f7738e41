#include "work/call_watch.h"

#include <utility>

#include "pipeline/pipeline.h"

namespace muster::work {
namespace {

using pipeline::Batch;
using pipeline::Collection;
using pipeline::Partition;
using pipeline::TargetChange;

class WatchedReader final : public pipeline::ReaderWrapper {
 public:
  WatchedReader(std::unique_ptr<Reader> inner, std::shared_ptr<CallWatch::Caller> caller)
      : ReaderWrapper(std::move(inner)), caller_(std::move(caller)) {}

  Result<std::optional<pipeline::Document>> Next() override {
    return caller_->Run([&] { return ReaderWrapper::Next(); });
  }
  Result<std::optional<std::string>> Split() override {
    return caller_->Run([&] { return ReaderWrapper::Split(); });
  }

 private:
  const std::shared_ptr<CallWatch::Caller> caller_;
};

class WatchedSource final : public pipeline::SourceWrapper {
 public:
  WatchedSource(Source& inner, CallWatch& watch) : SourceWrapper(inner), watch_(watch) {}

  Result<std::vector<Collection>> Collections() override {
    return Run([&] { return inner().Collections(); });
  }
  Result<std::optional<Collection>> Describe(const std::string& collection) override {
    return Run([&] { return inner().Describe(collection); });
  }
  Result<std::vector<pipeline::LeftOut>> Unlisted() override {
    return Run([&] { return inner().Unlisted(); });
  }
  Result<std::string> GlobalMetadata() override {
    return Run([&] { return inner().GlobalMetadata(); });
  }
  Result<std::string> TableId(const std::string& collection) override {
    return Run([&] { return inner().TableId(collection); });
  }
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    return Run([&] { return inner().Partitions(collection); });
  }
  Result<std::unique_ptr<pipeline::Reader>> Read(const Partition& partition,
                                                 const std::string& position,
                                                 std::stop_token stop) override {
    MUSTER_ASSIGN(auto reader,
                  Run([&] { return inner().Read(partition, position, std::move(stop)); }));
    return std::make_unique<WatchedReader>(std::move(reader), watch_.NewCaller(Party::kSource));
  }
  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    return Run([&] { return inner().CountAgain(partitions); });
  }

 private:
  template <class Call>
  auto Run(Call call) -> decltype(call()) {
    return watch_.NewCaller(Party::kSource)->Run(std::move(call));
  }

  CallWatch& watch_;
};

class WatchedWriter final : public pipeline::WriterWrapper {
 public:
  WatchedWriter(std::unique_ptr<Writer> inner, std::shared_ptr<CallWatch::Caller> caller)
      : WriterWrapper(std::move(inner)), caller_(std::move(caller)) {}

  Result<std::vector<pipeline::Refused>> Write(const Batch& batch, const pipeline::Progress& after,
                                               const pipeline::Patience& patience) override {
    return caller_->Run([&] { return WriterWrapper::Write(batch, after, patience); });
  }
  Status Flush() override {
    return caller_->Run([&] { return WriterWrapper::Flush(); });
  }
  Result<std::optional<pipeline::Progress>> Seal() override {
    return caller_->Run([&] { return WriterWrapper::Seal(); });
  }
  Status Finish() override {
    return caller_->Run([&] { return WriterWrapper::Finish(); });
  }

 private:
  const std::shared_ptr<CallWatch::Caller> caller_;
};

class WatchedSink final : public pipeline::SinkWrapper {
 public:
  WatchedSink(Sink& inner, CallWatch& watch) : SinkWrapper(inner), watch_(watch) {}

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    return Run([&] { return SinkWrapper::Prepare(collection, evaluate); });
  }
  Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata,
                                                  bool evaluate) override {
    return Run([&] { return SinkWrapper::PrepareGlobal(metadata, evaluate); });
  }
  Result<std::string> Identity(const std::string& collection) override {
    return Run([&] { return SinkWrapper::Identity(collection); });
  }
  Result<std::string> TableId(const std::string& collection) override {
    return Run([&] { return SinkWrapper::TableId(collection); });
  }
  Result<std::optional<int64_t>> CountDocuments(const std::string& collection) override {
    return Run([&] { return SinkWrapper::CountDocuments(collection); });
  }
  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& collection,
                                                 const pipeline::Fence& fence) override {
    MUSTER_ASSIGN(auto writer, Run([&] { return SinkWrapper::Open(collection, fence); }));
    return std::make_unique<WatchedWriter>(std::move(writer), watch_.NewCaller(Party::kSink));
  }
  Status Finish(const std::string& collection) override {
    return Run([&] { return SinkWrapper::Finish(collection); });
  }

 private:
  template <class Call>
  auto Run(Call call) -> decltype(call()) {
    return watch_.NewCaller(Party::kSink)->Run(std::move(call));
  }

  CallWatch& watch_;
};

}  // namespace

std::shared_ptr<CallWatch::Caller> CallWatch::NewCaller(Party party) {
  auto caller = std::make_shared<Caller>(party);
  const MutexLock lock(mutex_);
  std::erase_if(callers_, [](const auto& one) { return one.expired(); });
  callers_.push_back(caller);
  return caller;
}

std::string CallWatch::Look() {
  const MonoTime now = env_.MonoNow();
  const MutexLock lock(mutex_);
  std::string what;
  MonoTime longest = now;
  for (const auto& one : callers_) {
    const auto caller = one.lock();
    if (!caller) continue;
    const uint64_t calls = caller->calls_.load();
    if (calls != caller->seen_) {
      caller->seen_ = calls;
      caller->seen_at_ = now;
      continue;
    }
    const bool waits = calls % 2 == 1;
    if (!waits || caller->seen_at_ >= longest) continue;
    longest = caller->seen_at_;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - longest);
    what = "the " + std::string(PartyName(caller->party_)) + ", which has not answered for " +
           std::to_string(seconds.count()) + "s";
  }
  return what;
}

std::unique_ptr<pipeline::Source> NewWatchedSource(pipeline::Source& source, CallWatch& watch) {
  return std::make_unique<WatchedSource>(source, watch);
}

std::unique_ptr<pipeline::Sink> NewWatchedSink(pipeline::Sink& sink, CallWatch& watch) {
  return std::make_unique<WatchedSink>(sink, watch);
}

}  // namespace muster::work
