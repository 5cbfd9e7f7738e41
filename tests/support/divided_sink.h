#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/pipeline.h"

namespace muster::testing {

// A sink as search clusters are: it keeps no progress, documents may choose their targets, and one
// with the same id replaces another. It refuses documents whose ids begin with "bad", and targets
// whose names begin in upper case. Thread-safe.
class DividedSink final : public pipeline::Sink {
 public:
  struct Target {
    std::string metadata;
    std::string uuid;
    std::map<std::string, std::string> documents = {};  // bodies by id
  };

  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& collection,
                                                      bool evaluate) override {
    const MutexLock lock(mutex_);
    if (collection.name == "closed") return Error{Code::kInvalid, "it is closed"};
    if (targets_.contains(collection.name)) return std::vector<pipeline::TargetChange>();
    if (!evaluate) {
      targets_[collection.name] = {collection.metadata, "uuid" + std::to_string(++created_)};
    }
    return std::vector<pipeline::TargetChange>{{collection.name, "create " + collection.name}};
  }
  bool ReplacesById(const pipeline::Collection& /*collection*/) const override { return true; }
  Result<std::string> Identity(const std::string& collection) override {
    const MutexLock lock(mutex_);
    const auto found = targets_.find(collection);
    if (found != targets_.end()) return found->second.uuid;
    return Error{Code::kNotFound, "no " + collection};
  }
  Result<std::string> TableId(const std::string& collection) override {
    const MutexLock lock(mutex_);
    const auto found = targets_.find(collection);
    return found == targets_.end() ? std::string() : found->second.uuid;
  }
  Result<std::optional<int64_t>> CountDocuments(const std::string& collection) override {
    const MutexLock lock(mutex_);
    return static_cast<int64_t>(targets_[collection].documents.size());
  }
  Status CheckChosen(const std::string& target) const override {
    if (target.front() < 'A' || target.front() > 'Z') return {};
    return Error{Code::kInvalid, "'" + target + "' is no valid name"};
  }
  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& collection,
                                                 const pipeline::Fence& /*fence*/) override {
    return std::make_unique<TargetWriter>(*this, collection);
  }

  void Remove(const std::string& target) {
    const MutexLock lock(mutex_);
    targets_.erase(target);
  }
  bool Has(const std::string& target) const {
    const MutexLock lock(mutex_);
    return targets_.contains(target);
  }
  std::string Metadata(const std::string& target) const {
    const MutexLock lock(mutex_);
    const auto found = targets_.find(target);
    return found == targets_.end() ? std::string() : found->second.metadata;
  }
  std::vector<std::string> Ids(const std::string& target) const {
    const MutexLock lock(mutex_);
    std::vector<std::string> ids;
    const auto found = targets_.find(target);
    if (found == targets_.end()) return ids;
    for (const auto& [id, body] : found->second.documents) ids.push_back(id);
    return ids;
  }
  int created() const {
    const MutexLock lock(mutex_);
    return created_;
  }

 private:
  class TargetWriter final : public pipeline::Writer {
   public:
    TargetWriter(DividedSink& sink, std::string target) : sink_(sink), target_(std::move(target)) {}

    const std::optional<pipeline::Progress>& Known() const override { return known_; }
    Result<std::vector<pipeline::Refused>> Write(const pipeline::Batch& batch,
                                                 const pipeline::Progress& /*after*/,
                                                 const pipeline::Patience& /*patience*/) override {
      const MutexLock lock(sink_.mutex_);
      std::vector<pipeline::Refused> refused;
      for (size_t i = 0; i < batch.documents.size(); ++i) {
        const pipeline::Document& document = batch.documents[i];
        if (document.id.starts_with("bad")) {
          refused.push_back({i, "it is bad"});
        } else {
          sink_.targets_[target_].documents[std::string(document.id)] = document.body;
        }
      }
      return refused;
    }

   private:
    DividedSink& sink_;
    const std::string target_;
    const std::optional<pipeline::Progress> known_;
  };

  mutable Mutex mutex_;
  std::map<std::string, Target> targets_ GUARDED_BY(mutex_);
  int created_ GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::testing
