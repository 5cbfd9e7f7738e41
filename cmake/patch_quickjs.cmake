# cmake -DIN=quickjs.c -DOUT=patched.c -P patch_quickjs.cmake
#
# QuickJS asks whether the time is up when a script calls or loops, and in most of its own loops.
# These are the rest that a few bytes of script can make run for hours: array functions on a huge
# length, JSON of what is shared many times over, and searching for a long text in a long text.
file(READ ${IN} text)

function(write new old)
  string(FIND "${text}" "${old}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${IN} is not the version this was written for; it lacks:\n${old}")
  endif()
  string(REPLACE "${old}" "${new}" text "${text}")
  set(text "${text}" PARENT_SCOPE)
endfunction()

write("    if (unlikely(js_poll_interrupts(ctx))) {
        *pval = JS_EXCEPTION;
        return -1;
    }
    val = JS_EXCEPTION;
    present = -1;
    prop = JS_NewAtomInt64(ctx, idx);"
"    val = JS_EXCEPTION;
    present = -1;
    prop = JS_NewAtomInt64(ctx, idx);")

write("    if (unlikely(js_poll_interrupts(ctx)))
        return JS_EXCEPTION;
    prop = JS_NewAtomInt64(ctx, idx);
    if (prop == JS_ATOM_NULL)
        return JS_EXCEPTION;

    val = JS_GetProperty(ctx, obj, prop);"
"    prop = JS_NewAtomInt64(ctx, idx);
    if (prop == JS_ATOM_NULL)
        return JS_EXCEPTION;

    val = JS_GetProperty(ctx, obj, prop);")

write("    prop = JS_UNDEFINED;

    if (js_poll_interrupts(ctx))
        goto exception;
    if (js_check_stack_overflow(ctx->rt, 0)) {"
"    prop = JS_UNDEFINED;

    if (js_check_stack_overflow(ctx->rt, 0)) {")

# A comparison costs as much as the text is long. The counter may go far below zero: then it is time
# to ask.
write("            ctx->interrupt_counter -= v_len >> 6;
            if (js_poll_interrupts(ctx))
                goto fail;
            if (!string_cmp(p, p1, i, 0, v_len)) {"
"            if (!string_cmp(p, p1, i, 0, v_len)) {")

write("static int string_indexof(JSContext *ctx, JSString *p1, JSString *p2, int from)"
      "static int string_indexof(JSString *p1, JSString *p2, int from)")
write("        ctx->interrupt_counter -= len2 >> 6;
        if (unlikely(ctx->interrupt_counter <= 0)) {
            ctx->interrupt_counter = 1; /* the callers ask again, and can throw */
            if (lre_check_timeout(ctx))
                return -1;
            ctx->interrupt_counter = JS_INTERRUPT_COUNTER_INIT;
        }
        if (!string_cmp(p1, p2, j + 1, 1, len2 - 1))"
"        if (!string_cmp(p1, p2, j + 1, 1, len2 - 1))")
# What is put in its place may be as long as memory allows: ask every time.
write("            if (__js_poll_interrupts(ctx))
                goto exception;
            pos = string_indexof(ctx, sp, searchp, endOfLastMatch);"
"            pos = string_indexof(sp, searchp, endOfLastMatch);")
write("        if (js_poll_interrupts(ctx))
            goto exception;
        e = string_indexof(ctx, sp, rp, q);"
"        e = string_indexof(sp, rp, q);")

# Numbers in JSON are read and printed by js.cc, which keeps them as they were written where asked
# to. A number may now be a BigInt, which is reference-counted.
write("extern JSValue MusterReadJsonNumber(JSContext *ctx, const char *text, size_t size);
extern JSValue MusterPrintJsonNumber(JSContext *ctx, JSValue number);

static int json_parse_number(JSParseState *s, const uint8_t **pp)"
"static int json_parse_number(JSParseState *s, const uint8_t **pp)")
write("    s->token.u.num.val = MusterReadJsonNumber(s->ctx, (const char *)p_start, p - p_start);
    if (JS_IsException(s->token.u.num.val))
        return -1;
    *pp = p;"
"    s->token.u.num.val = js_float64(strtod((const char *)p_start, NULL));
    *pp = p;")
write("        val = js_dup(s->token.u.num.val);
        if (pr) {"
"        val = s->token.u.num.val;
        if (pr) {")
write("    case JS_TAG_FLOAT64:
    case JS_TAG_SHORT_BIG_INT:
    case JS_TAG_BIG_INT:
        val = MusterPrintJsonNumber(ctx, val);
        if (JS_IsException(val))
            goto exception;
        goto concat_value;"
"    case JS_TAG_FLOAT64:
        if (!isfinite(JS_VALUE_GET_FLOAT64(val))) {
            val = JS_NULL;
        }
        goto concat_value;")
write("    default:
        JS_FreeValue(ctx, val);
        return 0;
    }

exception:
    JS_FreeValue(ctx, val);
    JS_FreeValue(ctx, tab);"
"    case JS_TAG_SHORT_BIG_INT:
    case JS_TAG_BIG_INT:
        JS_ThrowTypeError(ctx, \"BigInt are forbidden in JSON.stringify\");
        goto exception;
    default:
        JS_FreeValue(ctx, val);
        return 0;
    }

exception:
    JS_FreeValue(ctx, val);
    JS_FreeValue(ctx, tab);")

# A number of a document that JavaScript's numbers cannot hold is an object of the engine, and a number
# to scripts and to JSON.
write("    if (MusterIsNumber(ctx, val)) {
        val = MusterPrintJsonNumber(ctx, val);
        if (JS_IsException(val))
            goto exception;
        goto concat_value;
    }
    if (JS_IsObject(val)) {
        p = JS_VALUE_GET_OBJ(val);
        cl = p->class_id;
        if (cl == JS_CLASS_STRING) {"
"    if (JS_IsObject(val)) {
        p = JS_VALUE_GET_OBJ(val);
        cl = p->class_id;
        if (cl == JS_CLASS_STRING) {")
write("    if (!MusterIsNumber(ctx, val) && (JS_IsObject(val) || JS_IsBigInt(val))) {
		JSValue f = JS_GetProperty(ctx, val, JS_ATOM_toJSON);"
"    if (JS_IsObject(val) || JS_IsBigInt(val)) {
		JSValue f = JS_GetProperty(ctx, val, JS_ATOM_toJSON);")
write("            else if (MusterIsNumber(ctx, op1))
                atom = JS_ATOM_number;
            else
                goto obj_type;
        }
        break;
    case JS_TAG_NULL:
    obj_type:"
"            else
                goto obj_type;
        }
        break;
    case JS_TAG_NULL:
    obj_type:")

# A number that may be rounded does not become text, and no text or BigInt becomes such a number. (A
# BigInt may become Infinity, which is not its value either; a text may say so.)
write("extern int MusterIsNumber(JSContext *ctx, JSValueConst value);

static JSValue js_dtoa2(JSContext *ctx,
                        double d, int radix, int n_digits, int flags)
{
    if (isfinite(d) && MusterCheckNumber(ctx, d))
        return JS_EXCEPTION;"
"static JSValue js_dtoa2(JSContext *ctx,
                        double d, int radix, int n_digits, int flags)
{")
write("        case JS_TAG_SHORT_BIG_INT:
            if (MusterCheckNumber(ctx, (double)JS_VALUE_GET_SHORT_BIG_INT(val)))
                return JS_EXCEPTION;
            val = js_int64(JS_VALUE_GET_SHORT_BIG_INT(val));
            if (JS_IsException(val))
                return val;
            break;"
"        case JS_TAG_SHORT_BIG_INT:
            val = js_int64(JS_VALUE_GET_SHORT_BIG_INT(val));
            if (JS_IsException(val))
                return val;
            break;")
write("                JS_FreeValue(ctx, val);
                if (MusterCheckNumber(ctx, d))
                    return JS_EXCEPTION;
                val = js_float64(d);
            }
            break;
        case JS_TAG_FLOAT64:
            if (isfinite(JS_VALUE_GET_FLOAT64(val)) &&
                MusterCheckNumber(ctx, JS_VALUE_GET_FLOAT64(val)))
                return JS_EXCEPTION;
            break;
        default:
            break;
        }
    }
    if (!JS_IsUndefined(new_target)) {
        obj = js_create_from_ctor(ctx, new_target, JS_CLASS_NUMBER);"
"                JS_FreeValue(ctx, val);
                val = js_float64(d);
            }
            break;
        default:
            break;
        }
    }
    if (!JS_IsUndefined(new_target)) {
        obj = js_create_from_ctor(ctx, new_target, JS_CLASS_NUMBER);")
write("extern int MusterCheckNumber(JSContext *ctx, double value);

/* Of a text, in which Infinity may be written out. */
static JSValue muster_checked(JSContext *ctx, JSValue number, const char *text)
{
    if (JS_VALUE_GET_TAG(number) == JS_TAG_FLOAT64 &&
        (isfinite(JS_VALUE_GET_FLOAT64(number)) || !strstr(text, \"Infinity\")) &&
        MusterCheckNumber(ctx, JS_VALUE_GET_FLOAT64(number)))
        return JS_EXCEPTION;
    return number;
}

static JSValue JS_ToNumberHintFree(JSContext *ctx, JSValue val,
                                   JSToNumberHintEnum flag)"
"static JSValue JS_ToNumberHintFree(JSContext *ctx, JSValue val,
                                   JSToNumberHintEnum flag)")
write("                        ret = JS_NAN;
                    }
                    ret = muster_checked(ctx, ret, str);
                }
            }
            JS_FreeCString(ctx, str);"
"                        ret = JS_NAN;
                    }
                }
            }
            JS_FreeCString(ctx, str);")
write("        ret = js_atof(ctx, p, NULL, radix, flags);
    }
    ret = muster_checked(ctx, ret, str);
    JS_FreeCString(ctx, str);
    return ret;"
"        ret = js_atof(ctx, p, NULL, radix, flags);
    }
    JS_FreeCString(ctx, str);
    return ret;")
write("    ret = js_atof(ctx, p, NULL, 10, 0);
    ret = muster_checked(ctx, ret, str);
    JS_FreeCString(ctx, str);
    return ret;"
"    ret = js_atof(ctx, p, NULL, 10, 0);
    JS_FreeCString(ctx, str);
    return ret;")
write("    tag = JS_VALUE_GET_TAG(op1);
    if (op == OP_plus && tag == JS_TAG_FLOAT64 && isfinite(JS_VALUE_GET_FLOAT64(op1)) &&
        MusterCheckNumber(ctx, JS_VALUE_GET_FLOAT64(op1)))
        goto exception;
    switch(tag) {
    case JS_TAG_INT:
        {
            int64_t v64;
            v64 = JS_VALUE_GET_INT(op1);
            switch(op) {
            case OP_inc:
            case OP_dec:
                v = 2 * (op - OP_dec) - 1;
                v64 += v;
                break;
            case OP_plus:"
"    tag = JS_VALUE_GET_TAG(op1);
    switch(tag) {
    case JS_TAG_INT:
        {
            int64_t v64;
            v64 = JS_VALUE_GET_INT(op1);
            switch(op) {
            case OP_inc:
            case OP_dec:
                v = 2 * (op - OP_dec) - 1;
                v64 += v;
                break;
            case OP_plus:")

# Two of a document's numbers that are objects of the engine are one number if they are equal.
write("extern int MusterIsSameNumber(JSContext *ctx, JSValueConst one, JSValueConst other);

static bool js_strict_eq2(JSContext *ctx, JSValueConst op1, JSValueConst op2,
                          JSStrictEqModeEnum eq_mode)
{"
"static bool js_strict_eq2(JSContext *ctx, JSValueConst op1, JSValueConst op2,
                          JSStrictEqModeEnum eq_mode)
{")
write("            res = JS_VALUE_GET_OBJ(op1) == JS_VALUE_GET_OBJ(op2) ||
                  MusterIsSameNumber(ctx, op1, op2);
        break;
    case JS_TAG_INT:
        d1 = JS_VALUE_GET_INT(op1);"
"            res = JS_VALUE_GET_OBJ(op1) == JS_VALUE_GET_OBJ(op2);
        break;
    case JS_TAG_INT:
        d1 = JS_VALUE_GET_INT(op1);")

# Only if it differs: all presets share it, and one must not make the next compile it again.
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
