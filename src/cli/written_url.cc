#include "cli/written_url.h"

#include <algorithm>
#include <vector>

namespace muster::cli {
namespace {

// What a source of the same scheme does not know or, like the columns of a CSV file without a
// header, understands in another way.
std::vector<std::string_view> OnlyForWriting(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  if (scheme == "csv") return {"columns", "compress"};
  if (scheme == "jsonl") return {"compress"};
  if (scheme == "postgresql") return {"misfits"};
  if (scheme.starts_with("opensearch")) return {"gzip", "pipeline"};
  return {};
}

// The next of these characters, from `at` on, that is not part of a secret reference.
size_t FindOutside(std::string_view text, std::string_view characters, size_t at) {
  while (at < text.size() && characters.find(text[at]) == std::string_view::npos) {
    const bool is_secret = text.substr(at).starts_with("${");
    at = is_secret ? std::min(text.find('}', at), text.size()) : at + 1;
  }
  return std::min(at, text.size());
}

}  // namespace

std::string WrittenUrl(std::string_view sink) {
  const std::vector<std::string_view> dropped = OnlyForWriting(sink);
  const size_t query = FindOutside(sink, "?#", 0);
  if (dropped.empty() || query == sink.size() || sink[query] == '#') return std::string(sink);
  std::string url(sink.substr(0, query));
  char separator = '?';
  size_t at = query;
  do {
    const size_t end = FindOutside(sink, "&#", at + 1);
    const std::string_view one = sink.substr(at + 1, end - at - 1);
    const std::string_view name = one.substr(0, one.find('='));
    if (std::find(dropped.begin(), dropped.end(), name) == dropped.end()) {
      url += separator;
      url += one;
      separator = '&';
    }
    at = end;
  } while (at < sink.size() && sink[at] == '&');
  return url + std::string(sink.substr(at));
}

}  // namespace muster::cli
