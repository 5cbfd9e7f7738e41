#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "script/js.h"
#include "script/js_guarded_number.h"

struct JSContext;
struct JSValue;

namespace muster::script {

// Reads and prints JSON numbers.
//
// QuickJS keeps a value's type in the lower half of a 64-bit tag and ignores the rest
// (JS_VALUE_GET_TAG). The upper half travels with the value, and computed values get a new tag. So
// a number there identifies the text the value was read from.
//
// A number beyond 2^53 is a BigInt, or guarded if it is not an integer. So no number of the script
// is a rounded one of a document. cmake/patch_quickjs.cmake makes the engine ask here before it
// would make one of a BigInt or a text, or print a computed one that may be rounded.
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

  // Whether it is a number of a document, though an object of the engine.
  bool IsGuarded(const JSValue& value) const { return guarded_.TextOf(value).has_value(); }

  // Whether both are, and equal: however they are written.
  bool IsSame(const JSValue& one, const JSValue& other) const;

  // Before a script gets this as a text, or as a number made of a text or a BigInt. False, with an
  // exception: it may be rounded.
  bool Check(JSContext* context, double value) const;

 private:
  struct Written {
    double value = 0;
    size_t begin = 0;
    size_t size = 0;
  };

  JSValue Large(JSContext* context, double value, std::string_view text);
  JSValue BigInt(JSContext* context, std::string_view digits) const;
  JSValue PrintBigInt(JSContext* context, JSValue number) const;
  // Names the number, of which `value` is what it is as a float.
  JSValue Literal(JSContext* context, JSValue number, double value, std::string_view text);
  const Written* WrittenOf(const JSValue& number) const;  // null: it was computed
  std::string_view TextOf(const Written& written) const;

  const JsNumbers mode_;
  const size_t max_bytes_;
  std::unique_ptr<JSValue> big_int_;
  JsGuardedNumbers guarded_;
  std::vector<Written> literals_;
  std::string bytes_;
  uint32_t first_ = 1;  // id of the first literal; 0 means none
};

// What the engine's callbacks reach through its context.
struct JsShared {
  const JsHost& host;
  JsNumberCodec numbers;

  static JsShared& Of(JSContext* context);
};

}  // namespace muster::script
