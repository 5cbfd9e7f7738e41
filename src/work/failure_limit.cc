#include <algorithm>
#include <cstdio>

#include "core/number.h"
#include "core/utf8.h"
#include "muster/work.h"

namespace muster::work {
namespace {

// A share of fewer documents says little.
constexpr int64_t kTellingDocuments = 1'000;

Error Invalid(const std::string& text) {
  return Error{Code::kInvalid, "'" + Shortened(text) + "' is not a limit for failed documents",
               "give a number of documents, as in 20, or a percentage of those read, as in 2.5%"};
}

}  // namespace

Result<FailureLimit> FailureLimit::Parse(const std::string& text) {
  if (text.ends_with('%')) {
    const auto percent = ParseNumber<double>(std::string_view(text).substr(0, text.size() - 1));
    if (!percent || *percent < 0 || *percent > 100) return Invalid(text);
    return FailureLimit{.percent = *percent};
  }
  const auto documents = ParseNumber<int64_t>(text);
  if (!documents || *documents < 0) return Invalid(text);
  return FailureLimit{.documents = *documents};
}

std::string FailureLimit::ToString() const {
  if (documents) return std::to_string(*documents);
  char text[32];
  std::snprintf(text, sizeof text, "%.15g%%", percent);
  return text;
}

bool FailureLimit::IsExceeded(const pipeline::Counts& counts) const {
  if (documents) return counts.failed > *documents;
  const auto read = static_cast<double>(std::max(counts.read + counts.added, kTellingDocuments));
  return static_cast<double>(counts.failed) * 100 > percent * read;
}

}  // namespace muster::work
