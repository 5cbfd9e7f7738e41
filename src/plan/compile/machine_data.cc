#include "plan/compile/machine_data.h"

#include <string_view>

#include "core/json_fields.h"

namespace muster::plan {
namespace {

constexpr char kResults[] = "results";
constexpr char kError[] = "Error";  // the names that Amazon States Language gives them
constexpr char kCause[] = "Cause";

// "$.reconcile" → "reconcile"
std::string_view NameIn(std::string_view path) { return path.substr(2); }

}  // namespace

std::string ResultPathOf(const std::string& task) {
  return std::string("$.") + kResults + "['" + task + "']";
}

const Json& ResultIn(const Json& data, const std::string& task) {
  return MemberIn(MemberIn(data, kResults), task);
}

const Json& ReconciledIn(const Json& data) {
  return MemberIn(MemberIn(data, NameIn(kReconcilePath)), kReconcileResult);
}

const Json& UnreconciledIn(const Json& data) { return MemberIn(data, NameIn(kUnreconciledPath)); }

bool IsError(const Json& result) { return result.is_object() && result.contains(kError); }

CaughtError ErrorIn(const Json& result) { return {TextIn(result, kError), TextIn(result, kCause)}; }

Json ToJson(const CaughtError& error) { return {{kError, error.error}, {kCause, error.cause}}; }

}  // namespace muster::plan
