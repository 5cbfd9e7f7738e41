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

# Only if it differs: all presets share it, and one must not make the next compile it again.
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
