// The unit for the cost of compiling: the processor time of this file at -O1, so that
// tests/cost.txt means the same on slow and fast machines.
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

std::map<std::string, std::vector<std::string>> Words(const std::string& text) {
  static const std::regex kWord(R"(\s*([a-z]+)(?:-([0-9]+))?\s*(?:,|$))", std::regex::icase);
  std::map<std::string, std::vector<std::string>> words;
  for (std::sregex_iterator match(text.begin(), text.end(), kWord), end; match != end; ++match) {
    words[(*match)[1]].push_back((*match)[2]);
  }
  for (auto& [word, numbers] : words) std::sort(numbers.begin(), numbers.end());
  return words;
}

size_t Distinct(const std::string& text) {
  std::unordered_map<std::string, std::function<size_t()>> counts;
  for (const auto& [word, numbers] : Words(text)) {
    counts[word] = [size = numbers.size()] { return size; };
  }
  size_t sum = 0;
  for (const auto& [word, count] : counts) sum += count();
  return sum;
}
