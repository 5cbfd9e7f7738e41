#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/mutex.h"
#include "replica/read_model.h"

namespace muster::replica {

// A read model that is the list of statements committed to it. For tests, and as the simulator's
// reference.
class MemoryReadModel : public ReadModel {
 public:
  struct Statement {
    std::string sql;
    std::vector<SqlValue> params;
  };

  Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                          std::span<const int> slots) override;
  Result<std::unique_ptr<Transaction>> Begin() override;
  Status Commit(Transaction& transaction, const Instance& instance,
                const ReadModelProgress& progress) override;
  Status Commit(Transaction& transaction) override;
  Status Swap(Transaction& transaction, const Instance& from, int to, int slots) override;
  Status SkipParked(const Instance& instance, const ParkedEvent& event) override;
  Result<std::vector<SlotState>> Slots(const Instance& instance) override;
  Result<int64_t> HighestGeneration(const std::string& set) override;
  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override;
  Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) override;
  Status Put(Transaction& transaction, const Instance& instance,
             std::span<const events::SlotPosition> slots, bool forget) override;
  Status Forget(Transaction& transaction, const Instance& instance,
                bool unless_swapped_in) override;

  // Everything that was committed, in order.
  std::vector<Statement> Statements() const;

  // Commits statements that were collected elsewhere.
  Status Apply(const std::vector<Statement>& statements, const Instance& instance,
               const ReadModelProgress& progress);
  Status ApplySwap(const std::vector<Statement>& statements, const Instance& from, int to,
                   int slots);

 private:
  using Name = std::tuple<std::string, std::string, int>;
  struct Model {
    std::map<int, SlotState> slots;
    std::map<std::string, ParkedStream> parked;
  };

  static void Free(Model& model, const ParkedEvent& event);
  static Status CheckParked(const Model& model, const ReadModelProgress& progress);
  static Status Move(Model& model, const ReadModelProgress& progress);

  mutable Mutex mutex_;
  std::map<Name, Model> models_ GUARDED_BY(mutex_);
  std::vector<Statement> statements_ GUARDED_BY(mutex_);
};

// Collects statements for a MemoryReadModel.
class MemoryTransaction final : public Transaction {
 public:
  Status Execute(const std::string& sql, std::vector<SqlValue> params) override {
    statements.push_back({sql, std::move(params)});
    return {};
  }
  Result<std::vector<std::vector<SqlValue>>> Query(const std::string&,
                                                   std::vector<SqlValue>) override {
    return Error{Code::kInvalid, "a read model in memory answers no queries"};
  }

  std::vector<MemoryReadModel::Statement> statements;
};

}  // namespace muster::replica
