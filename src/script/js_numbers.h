#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "script/js.h"

struct JSContext;
struct JSValue;

namespace muster::script {

// Reads and prints JSON numbers.
//
// QuickJS keeps a value's type in the lower half of a 64-bit tag and ignores the rest
// (JS_VALUE_GET_TAG). The upper half travels with the value, and computed values get a new tag. So
// a number there identifies the text the value was read from.
class JsNumberCodec {
 public:
  JsNumberCodec(JsNumbers mode, size_t max_bytes);
  ~JsNumberCodec();  // after End, if Start succeeded

  // Before the script can redefine BigInt. False: out of memory.
  bool Start(JSContext* context);
  void End(JSContext* context);

  // Drops the texts. Values a script has kept from earlier documents become plain numbers.
  void Clear();

  // The JSON parser has checked the syntax of `text`.
  JSValue Read(JSContext* context, const char* text, size_t size);

  // Consumes the number and returns what to print.
  JSValue Print(JSContext* context, JSValue number) const;

 private:
  struct Written {
    double value = 0;
    size_t begin = 0;
    size_t size = 0;
  };

  JSValue Literal(JSContext* context, double value, std::string_view text);
  std::optional<std::string_view> TextOf(const JSValue& number) const;

  const JsNumbers mode_;
  const size_t max_bytes_;
  std::unique_ptr<JSValue> big_int_;
  std::vector<Written> literals_;
  std::string bytes_;
  uint32_t first_ = 1;  // id of the first literal; 0 means none
};

}  // namespace muster::script
