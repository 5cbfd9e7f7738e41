#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct JSContext;
struct JSValue;

namespace muster::script {

// Numbers of a document that no number of JavaScript can stand for: beyond 2^53, and not integers.
// A script may move and copy them; whatever else it does with one throws. `typeof` is "number".
class JsGuardedNumbers {
 public:
  // Once per runtime. False: out of memory.
  bool Register(JSContext* context);

  JSValue Make(JSContext* context, std::string_view text) const;

  // None: another value.
  std::optional<std::string> TextOf(const JSValue& value) const;

 private:
  uint32_t class_id_ = 0;
};

}  // namespace muster::script
