#include "bars.h"

#include <cstdio>

namespace muster::bench {

void Bars::AtLeast(const std::string& what, double value, double bar, const std::string& unit) {
  Print(what, value, "at least", bar, unit, value >= bar);
}

void Bars::AtMost(const std::string& what, double value, double bar, const std::string& unit) {
  Print(what, value, "at most", bar, unit, value <= bar);
}

void Bars::Print(const std::string& what, double value, const char* relation, double bar,
                 const std::string& unit, bool holds) {
  std::printf("  %s: %.3g%s (%s %.3g%s%s)\n", what.c_str(), value, unit.c_str(), relation, bar,
              unit.c_str(), holds ? "" : ": DOES NOT HOLD");
  std::fflush(stdout);
  hold_ = hold_ && holds;
}

}  // namespace muster::bench
