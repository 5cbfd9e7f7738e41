#pragma once

#include <memory>
#include <string_view>

#include "muster/result.h"

namespace muster::pipeline {

// Checks documents fast, reusing its buffers. For one thread.
class JsonChecker {
 public:
  // How many bytes after the text must be readable.
  static constexpr size_t kPadding = 64;

  JsonChecker();
  ~JsonChecker();

  // As CheckJsonObject.
  Status CheckPadded(std::string_view text);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

// Whether it is well-formed UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace muster::pipeline
