#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::bench {

// The command line of a benchmark: options with a value (--rounds 3 or --rounds=3) or several
// (--workers 1 2 4), and flags (--smoke). A variable keeps its value, which help shows as the
// default, where its option is not given; it must live until Parse has returned.
class Arguments {
 public:
  explicit Arguments(std::string description) : description_(std::move(description)) {}

  void AddFlag(const std::string& name, bool& value, const std::string& description);
  void AddText(const std::string& name, std::string& value, const std::string& description);
  // Some of `choices`, which are the default.
  void AddChoices(const std::string& name, std::vector<std::string>& choices,
                  const std::string& description);
  // T: int, int64_t, uint64_t or double.
  template <class T>
  void AddNumber(const std::string& name, T& value, const std::string& description,
                 std::type_identity_t<T> first = 0,
                 std::type_identity_t<T> last = std::numeric_limits<T>::max());
  // T: int or uint64_t.
  template <class T>
  void AddNumbers(const std::string& name, std::vector<T>& values, const std::string& description,
                  std::type_identity_t<T> first = 0,
                  std::type_identity_t<T> last = std::numeric_limits<T>::max());

  // Sets the variables. Ends the process after printing help (exit code 0), or what is wrong with
  // the command line (2).
  void Parse(int argc, const char* const* argv);

 private:
  struct Option {
    std::string name;
    std::string argument;  // as help calls it
    std::string description;
    size_t most_values;  // at a use and altogether
    std::function<void(const std::vector<std::string>&)> set;
    bool given = false;
    std::vector<std::string> values = {};
  };

  void Read(int argc, const char* const* argv);
  Option& Find(const std::string& name);
  std::string Help() const;

  const std::string description_;
  std::string program_;
  std::vector<Option> options_;
};

}  // namespace muster::bench
