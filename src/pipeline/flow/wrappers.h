#pragma once

#include <memory>
#include <utility>

#include "muster/pipeline.h"

namespace muster::pipeline {

// Each forwards every call to another of its kind. Derive and override what differs.

class ReaderWrapper : public Reader {
 public:
  explicit ReaderWrapper(std::unique_ptr<Reader> inner) : inner_(std::move(inner)) {}

  Result<std::optional<Document>> Next() override { return inner_->Next(); }
  Result<std::optional<std::string>> Split() override { return inner_->Split(); }

 private:
  const std::unique_ptr<Reader> inner_;
};

// The wrapped object must outlive it.
class SourceWrapper : public Source {
 public:
  explicit SourceWrapper(Source& inner) : inner_(inner) {}

  Result<std::vector<Collection>> Collections() override { return inner_.Collections(); }
  Result<std::vector<LeftOut>> Unlisted() override { return inner_.Unlisted(); }
  Result<std::optional<Collection>> Describe(const std::string& collection) override {
    return inner_.Describe(collection);
  }
  Result<std::optional<std::string>> TargetOf(const std::string& collection) override {
    return inner_.TargetOf(collection);
  }
  Result<std::string> TableId(const std::string& collection) override {
    return inner_.TableId(collection);
  }
  Result<std::string> GlobalMetadata() override { return inner_.GlobalMetadata(); }
  bool KeepsTypes() const override { return inner_.KeepsTypes(); }
  bool KeepsRouting() const override { return inner_.KeepsRouting(); }
  bool KeepsJsonNulls() const override { return inner_.KeepsJsonNulls(); }
  bool HasDeletes() const override { return inner_.HasDeletes(); }
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    return inner_.Partitions(collection);
  }
  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    return inner_.Read(partition, position, std::move(stop));
  }
  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    return inner_.CountAgain(partitions);
  }
  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    return inner_.FractionBefore(partition, position);
  }

 protected:
  Source& inner() const { return inner_; }

 private:
  Source& inner_;
};

// A source as if it had one collection only, which the caller has described already: listing all of
// them again may be expensive. What lies outside of collections is the caller's to migrate. Both
// arguments must outlive it.
class OneCollection : public SourceWrapper {
 public:
  OneCollection(Source& source, const Collection& collection)
      : SourceWrapper(source), collection_(collection) {}

  Result<std::vector<Collection>> Collections() override { return std::vector{collection_}; }
  Result<std::vector<LeftOut>> Unlisted() override { return std::vector<LeftOut>(); }
  Result<std::string> GlobalMetadata() override { return std::string("{}"); }

 private:
  const Collection& collection_;
};

// The wrapped object must outlive it.
class TransformPlanWrapper : public TransformPlan {
 public:
  explicit TransformPlanWrapper(const TransformPlan& inner) : inner_(inner) {}

  Result<std::vector<std::unique_ptr<Transform>>> Make(
      const std::string& collection) const override {
    return inner_.Make(collection);
  }
  std::string TargetName(const std::string& collection) const override {
    return inner_.TargetName(collection);
  }
  bool EditsDocuments() const override { return inner_.EditsDocuments(); }
  bool ChoosesTargets() const override { return inner_.ChoosesTargets(); }
  std::string Scripts() const override { return inner_.Scripts(); }
  Result<Collection> Target(const Collection& collection) const override {
    return inner_.Target(collection);
  }

 protected:
  const TransformPlan& inner() const { return inner_; }

 private:
  const TransformPlan& inner_;
};

class WriterWrapper : public Writer {
 public:
  explicit WriterWrapper(std::unique_ptr<Writer> inner) : inner_(std::move(inner)) {}

  const std::optional<Progress>& Known() const override { return inner_->Known(); }
  bool Sealed() const override { return inner_->Sealed(); }
  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override {
    return inner_->Write(batch, after, patience);
  }
  bool RecordsRefusals(RefusalRecorder record) override {
    return inner_->RecordsRefusals(std::move(record));
  }
  Status Flush() override { return inner_->Flush(); }
  Result<std::optional<Progress>> Seal() override { return inner_->Seal(); }
  Status Finish() override { return inner_->Finish(); }

 private:
  const std::unique_ptr<Writer> inner_;
};

// The wrapped object must outlive it.
class SinkWrapper : public Sink {
 public:
  explicit SinkWrapper(Sink& inner) : inner_(inner) {}

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    return inner_.Prepare(collection, evaluate);
  }
  Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata,
                                                  bool evaluate) override {
    return inner_.PrepareGlobal(metadata, evaluate);
  }
  bool CanDelete() const override { return inner_.CanDelete(); }
  bool ReplacesById(const Collection& collection) const override {
    return inner_.ReplacesById(collection);
  }
  std::string Place(const std::string& collection) const override {
    return inner_.Place(collection);
  }
  Result<std::string> Identity(const std::string& collection) override {
    return inner_.Identity(collection);
  }
  Result<std::string> TableId(const std::string& collection) override {
    return inner_.TableId(collection);
  }
  Result<std::optional<int64_t>> CountDocuments(const std::string& collection) override {
    return inner_.CountDocuments(collection);
  }
  BatchLimits PreferredLimits() const override { return inner_.PreferredLimits(); }
  Status CheckChosen(const std::string& target) const override {
    return inner_.CheckChosen(target);
  }
  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override {
    return inner_.Open(collection, fence);
  }
  Status Finish(const std::string& collection) override { return inner_.Finish(collection); }

 private:
  Sink& inner_;
};

}  // namespace muster::pipeline
