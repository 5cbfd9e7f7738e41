#include "cli/left_out.h"

#include <map>
#include <string>

#include "core/log.h"

namespace muster::cli {

std::vector<pipeline::LeftOut> LeftOutOf(pipeline::Source& source,
                                         const pipeline::CollectionFilter& allowed) {
  auto left_out = source.Unlisted();
  if (!left_out) {
    Log(Level::kWarning, "what the source leaves out is unknown",
        {{"error", left_out.error().ToString()}});
    return {};
  }
  if (allowed) std::erase_if(*left_out, [&](const auto& one) { return !allowed(one.name); });
  return *std::move(left_out);
}

void PrintLeftOut(std::ostream& out, const std::vector<pipeline::LeftOut>& left_out) {
  std::map<std::string, std::string> names;  // by reason
  for (const auto& [name, reason] : left_out) {
    std::string& all = names[reason];
    all += (all.empty() ? "" : ", ") + name;
  }
  for (const auto& [reason, all] : names) out << "Left out: " << all << " (" << reason << ")\n";
}

void AddLeftOut(const std::vector<pipeline::LeftOut>& left_out, Json& report) {
  for (const auto& [name, reason] : left_out) {
    report["left_out"].push_back({{"collection", name}, {"reason", reason}});
  }
}

}  // namespace muster::cli
