#pragma once

#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/store.h"
#include "store/doctor/diagnose.h"
#include "store/store_url.h"

namespace muster::store {

// Collects findings.
class Findings {
 public:
  void Ok(std::string check, std::string message) {
    list_.push_back({Finding::Level::kOk, std::move(check), std::move(message)});
  }
  void Warn(std::string check, std::string message, std::string hint) {
    list_.push_back({Finding::Level::kWarn, std::move(check), std::move(message), std::move(hint)});
  }
  void Fail(std::string check, Error error) {
    list_.push_back({Finding::Level::kFail, std::move(check), std::move(error.message),
                     std::move(error.hint), error.code});
    failed_ = true;
  }
  bool failed() const { return failed_; }
  std::vector<Finding> Take() { return std::move(list_); }

 private:
  std::vector<Finding> list_;
  bool failed_ = false;
};

// Compares the store's clock with ours, from a response requested at `asked` and received at
// `answered`.
void DiagnoseClock(WallTime asked, WallTime store, WallTime answered, Findings& findings);

// Looks for leases and pauses that a clock that was set back has left: they only end once it has
// caught up.
Status DiagnoseWaits(Store& store, Findings& findings);

// Backend-specific checks. True: the store exists, so opening it creates nothing.
bool DiagnoseSqlite(const StoreUrl& url, Findings& findings);
bool DiagnosePostgres(const StoreUrl& url, Env& env, Findings& findings);
bool DiagnoseDynamoDb(const StoreUrl& url, Env& env, Findings& findings);
bool DiagnoseOpenSearch(const StoreUrl& url, Env& env, Findings& findings);

}  // namespace muster::store
