#include "task/parameters.h"

#include <algorithm>
#include <cctype>

#include "core/url.h"
#include "task/secret_references.h"

namespace muster::task {

Result<Parameters> Parameters::Read(const states::TaskCall& call,
                                    std::initializer_list<std::string_view> known) {
  const Parameters parameters(call);
  if (!call.input.is_object()) return parameters.Wrong("parameters must be an object");
  for (const auto& [name, value] : call.input.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return parameters.Wrong("unknown parameter " + name);
    }
  }
  return parameters;
}

Result<std::string> Parameters::Optional(const std::string& name,
                                         const std::string& fallback) const {
  const auto found = call_->input.find(name);
  if (found == call_->input.end() || found->is_null()) return fallback;
  if (!found->is_string()) return Wrong(name + " must be a string");
  return found->get<std::string>();
}

Result<std::string> Parameters::Required(const std::string& name) const {
  MUSTER_ASSIGN(std::string text, Optional(name));
  if (text.empty()) return Wrong(name + " is missing");
  return text;
}

Result<std::string> Parameters::Place(const std::string& name) const {
  MUSTER_ASSIGN(std::string text, Required(name));
  MUSTER_TRY(CheckReferences(*call_, JsonPointerTo("", name), text));
  return text;
}

Result<std::string> Parameters::PlaceInFolder(const std::string& name) const {
  MUSTER_ASSIGN(const std::string text, Place(name));
  MUSTER_ASSIGN(const std::string folder, Optional("folder"));
  return InFolder(folder, text);
}

Result<std::vector<std::pair<std::string, std::string>>> Parameters::Texts(
    const std::string& name) const {
  std::vector<std::pair<std::string, std::string>> texts;
  const auto found = call_->input.find(name);
  if (found == call_->input.end() || found->is_null()) return texts;
  if (!found->is_object()) return Wrong(name + " must be an object");
  for (const auto& [key, value] : found->items()) {
    if (value.is_structured() || value.is_null()) {
      return Wrong(name + ": " + key + " must be a string");
    }
    texts.emplace_back(key, value.is_string() ? value.get<std::string>() : ToJsonText(value));
  }
  return texts;
}

Json Parameters::Value(const std::string& name) const {
  const auto found = call_->input.find(name);
  return found == call_->input.end() ? Json() : *found;
}

Error Parameters::Wrong(const std::string& what) const {
  return Error{Code::kInvalid, call_->resource + ": " + what};
}

std::string InFolder(const std::string& folder, const std::string& place) {
  if (folder.empty()) return place;
  const std::string end = folder.ends_with('/') ? "" : "/";
  std::string_view scheme;
  for (const std::string_view one : {"csv:", "jsonl:", "sqlite:", "snapshot+file:"}) {
    if (place.starts_with(one)) scheme = one;
  }
  const std::string_view path = std::string_view(place).substr(scheme.size());
  const bool elsewhere = scheme.empty() && path.find("://") != path.npos;
  if (path.empty() || elsewhere || path.starts_with('/') || path.starts_with("${")) return place;
  if (scheme.empty()) return folder + end + place;
  // URL paths are percent-encoded.
  std::string encoded;
  for (const char c : folder) encoded += c == '/' ? "/" : PercentEncode(std::string_view(&c, 1));
  return std::string(scheme) + encoded + end + std::string(path);
}

std::string FailureName(std::string_view family, Code code) {
  std::string name = std::string(family) + ".";
  bool upper = true;
  for (const char c : CodeName(code)) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name;
}

}  // namespace muster::task
