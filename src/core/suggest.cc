#include "core/suggest.h"

#include <algorithm>
#include <numeric>

namespace muster {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> DidYouMean(std::string_view word,
                                      const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  // With more than a third of the letters wrong it is another word.
  size_t nearest = word.size() / 3 + 2;
  for (const std::string& candidate : candidates) {
    size_t distance = EditDistance(word, candidate);
    bool begins = word.size() >= 3 && std::string_view(candidate).starts_with(word);
    if (begins) distance = std::min<size_t>(distance, 1);
    if (distance < nearest && distance < candidate.size() / 2 + 1) {
      nearest = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace muster
