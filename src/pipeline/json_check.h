#pragma once

#include <memory>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Checks documents at speed, with memory that is used again and again. For one thread.
class JsonChecker {
 public:
  // How many bytes behind a text must be readable, whatever they are.
  static constexpr size_t kPadding = 64;

  JsonChecker();
  ~JsonChecker();

  // As CheckJsonObject.
  Status CheckPadded(std::string_view text);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

// Whether all of it is well-formed UTF-8, at speed.
bool IsUtf8(std::string_view text);

}  // namespace muster
