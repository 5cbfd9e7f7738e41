#include "metadata/analysis.h"

#include <optional>
#include <utility>

namespace muster::metadata {
namespace {

constexpr std::string_view kAnalysis = "index.analysis.";

// The parts of "index.analysis.filter.NAME.PARAMETER"; names may have dots.
struct Part {
  std::string kind;
  std::string name;
  std::string parameter;
};

std::optional<Part> PartOf(std::string_view setting) {
  if (!setting.starts_with(kAnalysis)) return std::nullopt;
  setting.remove_prefix(kAnalysis.size());
  const size_t first = setting.find('.');
  const size_t last = setting.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  return Part{std::string(setting.substr(0, first)),
              std::string(setting.substr(first + 1, last - first - 1)),
              std::string(setting.substr(last + 1))};
}

bool IsDefined(const Json& settings, const std::string& kind, const std::string& name) {
  const std::string prefix = std::string(kAnalysis) + kind + "." + name + ".";
  for (const auto& [setting, value] : settings.items()) {
    if (setting.starts_with(prefix)) return true;
  }
  return false;
}

// The new value of a setting that names one part or a list of them; none: unchanged.
std::optional<Json> Renamed(const Json& value, const Json& names, const Json& settings,
                            const std::string& kind) {
  const auto find = [&](const Json& one) -> const Json* {
    if (!one.is_string()) return nullptr;
    const auto found = names.find(one.get<std::string>());
    // The name refers to the user's own definition.
    if (found == names.end() || IsDefined(settings, kind, one.get<std::string>())) return nullptr;
    return &*found;
  };
  if (value.is_string()) {
    const Json* found = find(value);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  if (!value.is_array()) return std::nullopt;
  Json list = Json::array();
  bool changed = false;
  for (const Json& one : value) {
    const Json* found = find(one);
    changed = changed || found != nullptr;
    if (found == nullptr) {
      list.push_back(one);
    } else if (!found->is_null()) {
      list.push_back(*found);
    }
  }
  return changed ? std::optional(list) : std::nullopt;
}

}  // namespace

std::vector<std::string> RenameAnalysis(const Json& types, Json& settings) {
  std::vector<std::pair<std::string, Json>> edits;
  for (const auto& [setting, value] : settings.items()) {
    const auto part = PartOf(setting);
    if (!part) continue;
    if (part->parameter == "type" && types.contains(part->kind) && value.is_string()) {
      const Json& names = types[part->kind];
      const auto found = names.find(value.get<std::string>());
      if (found != names.end()) edits.emplace_back(setting, *found);
    } else if ((part->kind == "analyzer" || part->kind == "normalizer") &&
               types.contains(part->parameter)) {
      if (auto renamed = Renamed(value, types[part->parameter], settings, part->parameter)) {
        edits.emplace_back(setting, *std::move(renamed));
      }
    }
  }
  std::vector<std::string> changed;
  for (auto& [setting, value] : edits) {
    changed.push_back(setting);
    if (value.is_null()) {
      settings.erase(setting);
    } else {
      settings[setting] = std::move(value);
    }
  }
  return changed;
}

}  // namespace muster::metadata
