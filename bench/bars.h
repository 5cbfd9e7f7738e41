#pragma once

#include <string>

namespace muster::bench {

// What was measured, and whether the bars hold.
class Bars {
 public:
  void AtLeast(const std::string& what, double value, double bar, const std::string& unit);
  void AtMost(const std::string& what, double value, double bar, const std::string& unit);
  bool hold() const { return hold_; }

 private:
  void Print(const std::string& what, double value, const char* relation, double bar,
             const std::string& unit, bool holds);
  bool hold_ = true;
};

}  // namespace muster::bench
