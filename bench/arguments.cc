#include "arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace muster::bench {
namespace {

template <class T>
T NumberOf(const std::string& text, T first, T last) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(number >= first && number <= last)) {
    std::ostringstream problem;
    problem << "'" << text << "' is not a number from " << first << " to " << last;
    throw std::invalid_argument(problem.str());
  }
  return number;
}

template <class T>
std::string WithDefaults(const std::string& description, const std::vector<T>& values) {
  std::ostringstream text;
  text << description << (description.empty() ? "(" : " (");
  for (size_t i = 0; i < values.size(); ++i) text << (i == 0 ? "" : " ") << values[i];
  text << ")";
  return text.str();
}

}  // namespace

void Arguments::AddFlag(const std::string& name, bool& value, const std::string& description) {
  options_.push_back({name, "", description, 0, [&value](const auto&) { value = true; }});
}

void Arguments::AddText(const std::string& name, std::string& value,
                        const std::string& description) {
  options_.push_back({name, " TEXT",
                      value.empty() ? description : WithDefaults<std::string>(description, {value}),
                      1, [&value](const auto& given) { value = given.front(); }});
}

void Arguments::AddChoices(const std::string& name, std::vector<std::string>& choices,
                           const std::string& description) {
  options_.push_back({name, " NAME...", WithDefaults(description, choices), SIZE_MAX,
                      [&choices](const auto& given) {
                        for (const std::string& one : given) {
                          if (std::find(choices.begin(), choices.end(), one) == choices.end()) {
                            throw std::invalid_argument("there is no '" + one + "'");
                          }
                        }
                        choices = given;
                      }});
}

template <class T>
void Arguments::AddNumber(const std::string& name, T& value, const std::string& description,
                          std::type_identity_t<T> first, std::type_identity_t<T> last) {
  options_.push_back({name, " N", WithDefaults<T>(description, {value}), 1,
                      [&value, first, last](const auto& given) {
                        value = NumberOf<T>(given.front(), first, last);
                      }});
}
template void Arguments::AddNumber(const std::string&, int&, const std::string&, int, int);
template void Arguments::AddNumber(const std::string&, int64_t&, const std::string&, int64_t,
                                   int64_t);
template void Arguments::AddNumber(const std::string&, uint64_t&, const std::string&, uint64_t,
                                   uint64_t);
template void Arguments::AddNumber(const std::string&, double&, const std::string&, double, double);

template <class T>
void Arguments::AddNumbers(const std::string& name, std::vector<T>& values,
                           const std::string& description, std::type_identity_t<T> first,
                           std::type_identity_t<T> last) {
  options_.push_back({name, " N...", WithDefaults(description, values), SIZE_MAX,
                      [&values, first, last](const auto& given) {
                        values.clear();
                        for (const std::string& one : given) {
                          values.push_back(NumberOf<T>(one, first, last));
                        }
                      }});
}
template void Arguments::AddNumbers(const std::string&, std::vector<int>&, const std::string&, int,
                                    int);
template void Arguments::AddNumbers(const std::string&, std::vector<uint64_t>&, const std::string&,
                                    uint64_t, uint64_t);

void Arguments::Parse(int argc, const char* const* argv) {
  program_ = std::filesystem::path(argv[0]).filename();
  try {
    Read(argc, argv);
  } catch (const std::invalid_argument& problem) {
    std::cerr << program_ << ": " << problem.what() << " (see --help)\n";
    std::exit(2);
  }
}

void Arguments::Read(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (size_t i = 0; i < words.size();) {
    const std::string& word = words[i++];
    if (word == "--help" || word == "-h") {
      std::cout << Help() << std::flush;
      std::exit(0);
    }
    const size_t equals = std::min(word.find('='), word.size());
    Option& option = Find(word.substr(0, equals));
    option.given = true;
    size_t left = option.most_values;
    if (equals < word.size()) {
      option.values.push_back(word.substr(equals + 1));
      left = 0;
    }
    for (; left > 0 && i < words.size() && !words[i].starts_with("--"); --left) {
      option.values.push_back(words[i++]);
    }
  }
  for (const Option& option : options_) {
    if (!option.given) continue;
    const size_t most = option.most_values;
    if (option.values.size() > most || (most > 0 && option.values.empty())) {
      throw std::invalid_argument(option.name + (most == 0   ? " takes no value"
                                                 : most == 1 ? " takes one value"
                                                             : " needs a value"));
    }
    try {
      option.set(option.values);
    } catch (const std::invalid_argument& problem) {
      throw std::invalid_argument(option.name + ": " + problem.what());
    }
  }
}

Arguments::Option& Arguments::Find(const std::string& name) {
  for (Option& option : options_) {
    if (option.name == name) return option;
  }
  throw std::invalid_argument("unknown option '" + name + "'");
}

std::string Arguments::Help() const {
  size_t width = 0;
  for (const Option& option : options_) {
    width = std::max(width, option.name.size() + option.argument.size());
  }
  std::string text = description_ + "\n\nUsage: " + program_ + " [OPTIONS]\n\nOptions:\n";
  for (const Option& option : options_) {
    std::string term = option.name + option.argument;
    term.resize(width, ' ');
    text += "  " + term + "  " + option.description + "\n";
  }
  return text;
}

}  // namespace muster::bench
