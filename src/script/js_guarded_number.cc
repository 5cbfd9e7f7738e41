#include "script/js_guarded_number.h"

#include <quickjs.h>

#include <cstring>

namespace muster::script {
namespace {

// Every property is refused, and with them all conversions, spreading and enumeration.
int Refuse(JSContext* context, JSValueConst number) {
  JSClassID id = 0;
  const auto* const text = static_cast<const char*>(JS_GetAnyOpaque(number, &id));
  JS_ThrowRangeError(context, "%.60s is beyond 2^53 and no integer: JavaScript would round it",
                     text == nullptr ? "a number" : text);
  return -1;
}

int GetOwnProperty(JSContext* context, JSPropertyDescriptor* /*found*/, JSValueConst number,
                   JSAtom /*name*/) {
  return Refuse(context, number);
}

int GetOwnPropertyNames(JSContext* context, JSPropertyEnum** /*names*/, uint32_t* /*count*/,
                        JSValueConst number) {
  return Refuse(context, number);
}

int DeleteProperty(JSContext* context, JSValueConst number, JSAtom /*name*/) {
  return Refuse(context, number);
}

int DefineOwnProperty(JSContext* context, JSValueConst number, JSAtom /*name*/,
                      JSValueConst /*value*/, JSValueConst /*getter*/, JSValueConst /*setter*/,
                      int /*flags*/) {
  return Refuse(context, number);
}

int HasProperty(JSContext* context, JSValueConst number, JSAtom /*name*/) {
  return Refuse(context, number);
}

JSValue GetProperty(JSContext* context, JSValueConst number, JSAtom /*name*/,
                    JSValueConst /*receiver*/) {
  Refuse(context, number);
  return JS_EXCEPTION;
}

int SetProperty(JSContext* context, JSValueConst number, JSAtom /*name*/, JSValueConst /*value*/,
                JSValueConst /*receiver*/, int /*flags*/) {
  return Refuse(context, number);
}

void Finalize(JSRuntime* runtime, JSValueConst number) {
  JSClassID id = 0;
  js_free_rt(runtime, JS_GetAnyOpaque(number, &id));
}

const JSClassExoticMethods kExotic{.get_own_property = &GetOwnProperty,
                                   .get_own_property_names = &GetOwnPropertyNames,
                                   .delete_property = &DeleteProperty,
                                   .define_own_property = &DefineOwnProperty,
                                   .has_property = &HasProperty,
                                   .get_property = &GetProperty,
                                   .set_property = &SetProperty};

}  // namespace

bool JsGuardedNumbers::Register(JSContext* context) {
  JSRuntime* const runtime = JS_GetRuntime(context);
  class_id_ = 0;
  JS_NewClassID(runtime, &class_id_);
  JSClassDef definition{};
  definition.class_name = "Number";
  definition.finalizer = &Finalize;
  // QuickJS only reads it.
  definition.exotic = const_cast<JSClassExoticMethods*>(&kExotic);
  return JS_NewClass(runtime, class_id_, &definition) == 0;
}

JSValue JsGuardedNumbers::Make(JSContext* context, std::string_view text) const {
  auto* const kept = static_cast<char*>(js_malloc(context, text.size() + 1));
  if (kept == nullptr) return JS_EXCEPTION;
  std::memcpy(kept, text.data(), text.size());
  kept[text.size()] = '\0';
  const JSValue number = JS_NewObjectClass(context, class_id_);
  if (JS_IsException(number)) {
    js_free(context, kept);
    return number;
  }
  JS_SetOpaque(number, kept);
  return number;
}

std::optional<std::string> JsGuardedNumbers::TextOf(const JSValue& value) const {
  const auto* const text = static_cast<const char*>(JS_GetOpaque(value, class_id_));
  if (text == nullptr) return std::nullopt;
  return std::string(text);
}

}  // namespace muster::script
