#pragma once

#include <string>
#include <unordered_map>
#include <utility>

namespace muster::sim {

// A cache of parsed record bodies. Checks look at the same few again and again, and parsing them
// would cost more than anything else they do.
template <class T>
class Parsed {
 public:
  using Parse = T (*)(const std::string& body);
  explicit Parsed(Parse parse) : parse_(parse) {}

  // The reference stays valid for the next kKept others.
  const T& operator[](const std::string& body) {
    if (const auto found = new_.find(body); found != new_.end()) return found->second;
    if (const auto found = old_.find(body); found != old_.end()) return found->second;
    if (new_.size() >= kKept) {
      old_ = std::move(new_);
      new_.clear();
    }
    return new_.emplace(body, parse_(body)).first->second;
  }

 private:
  static constexpr size_t kKept = 64;

  Parse parse_;
  std::unordered_map<std::string, T> new_;
  std::unordered_map<std::string, T> old_;
};

}  // namespace muster::sim
