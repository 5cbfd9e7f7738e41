#include "script/js.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/json.h"

namespace muster::script {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr JsLimits kTight{.time = milliseconds(50), .memory_bytes = size_t{8} << 20};

std::unique_ptr<JsFunction> Compiled(std::string_view source, const JsLimits& limits = {}) {
  auto function = JsFunction::Compile(source, "test.js", limits);
  EXPECT_TRUE(function) << function.error().ToString();
  return *std::move(function);
}

// The result for one document: JSON, "undefined", or "error: ...".
std::string Say(JsFunction& function, std::string_view argument) {
  const auto result = function.Call({argument});
  if (!result) return "error: " + result.error().ToString();
  return result->value_or("undefined");
}

std::string RunOnce(std::string_view source, std::string_view argument) {
  auto function = JsFunction::Compile(source, "test.js");
  if (!function) return "error: " + function.error().ToString();
  return Say(**function, argument);
}

TEST(Js, MapsADocument) {
  EXPECT_EQ(RunOnce("(doc) => ({...doc, id: doc.key + 1})", R"({"key":1,"ä":"ö😀"})"),
            R"({"key":1,"ä":"ö😀","id":2})");
}

TEST(Js, TakesSeveralArguments) {
  const auto add = Compiled("(a, b, c) => a + b + c.d");
  const auto sum = add->Call({"1", "2", R"({"d":3})"});
  ASSERT_TRUE(sum) << sum.error().ToString();
  EXPECT_EQ(*sum, "6");
}

TEST(Js, UndefinedIsNotNull) {
  EXPECT_EQ(RunOnce("(doc) => undefined", "1"), "undefined");
  EXPECT_EQ(RunOnce("(doc) => null", "1"), "null");
}

TEST(Js, PromiseIsAwaited) {
  EXPECT_EQ(RunOnce("async (doc) => { await null; return doc + 1; }", "1"), "2");
  EXPECT_EQ(RunOnce("async (doc) => { await null; throw new Error('late'); }", "1"),
            "error: test.js:1:40: Error: late");
  EXPECT_EQ(RunOnce("(doc) => new Promise(() => {})", "1"),
            "error: test.js: returned a promise that nothing can fulfil");
}

TEST(Js, NumbersAreJavaScripts) {
  EXPECT_EQ(RunOnce("(doc) => doc", "[9007199254740993, 1.0, 1e3, -0, 1e400, 0.1, 1e21]"),
            "[9007199254740992,1,1000,0,null,0.1,1e+21]");
}

std::unique_ptr<JsFunction> Exact(std::string_view source) {
  auto function = JsFunction::Compile(source, "test.js", {}, nullptr, JsNumbers::kExact);
  EXPECT_TRUE(function) << function.error().ToString();
  return *std::move(function);
}

TEST(Js, ExactNumbersKeepTheirTextWhenMoved) {
  const std::string numbers =
      "[9007199254740991,9007199254740992,9007199254740993,-9007199254740993,1.0,1.10,1e3,1E+2,-0,"
      "0.0,-0.0,1e400,1e-400,0.1,1e21,123456789012345678901234567890,18446744073709551615,"
      "0.1000000000000000055511151231257827,12345678901234567890.50]";
  EXPECT_EQ(Say(*Exact("(doc) => doc"), numbers), numbers);
  EXPECT_EQ(Say(*Exact("(doc) => JSON.parse(JSON.stringify(doc))"), numbers), numbers);
  EXPECT_EQ(Say(*Exact("(doc) => { let kept = [...doc]; kept = kept.map((x) => ({x}));"
                       " return kept.map(({x}) => x) }"),
                numbers),
            numbers);
  EXPECT_EQ(Say(*Exact("async ({a, ...rest}) => { await null; return {b: a, c: [a], ...rest} }"),
                R"({"a":1.0,"x":1.00,"y":9007199254740993})"),
            R"({"b":1.0,"c":[1.0],"x":1.00,"y":9007199254740993})");
  EXPECT_EQ(Say(*Exact("(doc) => doc.sort((a, b) => a - b)"), "[3.0,1.50,2e0]"), "[1.50,2e0,3.0]");
  EXPECT_EQ(Say(*Exact("(doc) => new Number(doc.a)"), R"({"a":1.0})"), "1.0");
}

TEST(Js, ScriptSeesExactNumbersAsOrdinaryNumbers) {
  EXPECT_EQ(Say(*Exact("(d) => [typeof d.a, d.a === 1, d.a + 1, d.a * 2.5, -d.a, d.a | 0, `${d.a}`,"
                       " Math.max(d.a, 0.5) === 1, [5, 6][d.a], new Map([[1, 'x']]).get(d.a),"
                       " isNaN(d.a), Object.is(d.z, -0), d.b > 10, d.b == 1000]"),
                R"({"a":1.0,"b":1e3,"z":-0})"),
            R"(["number",true,2,2.5,-1,1,"1",true,6,"x",false,true,true,true])");
  EXPECT_EQ(Say(*Exact("(d) => { d.a++; d.b += 1; d.c = d.c; return d }"),
                R"({"a":1.0,"b":2.0,"c":3.0})"),
            R"({"a":2,"b":3,"c":3.0})");
}

TEST(Js, IntegersBeyond2To53AreBigInt) {
  const std::string document = R"({"id":9007199254740993,"n":1})";
  EXPECT_EQ(Say(*Exact("(d) => [typeof d.id, d.id + 1n, d.id % 10n, String(d.id), d.id > d.n]"),
                document),
            R"(["bigint",9007199254740994,3,"9007199254740993",true])");
  for (const char* script : {"(d) => d.id + 1", "(d) => Math.floor(d.id)", "(d) => d.id / 2",
                             "(d) => +d.id", "(d) => Number(d.id)", "(d) => parseInt(d.id)"}) {
    const std::string said = Say(*Exact(script), document);
    EXPECT_TRUE(said.starts_with("error: ")) << script << ": " << said;
  }
}

TEST(Js, LargeNumbersWithExponentsAreBigIntToo) {
  const std::string document = R"({"a":1e20,"b":9007199254740993.0,"c":-1.5e17,"n":1e3})";
  EXPECT_EQ(
      Say(*Exact("(d) => [typeof d.a, d.a + 1n, d.b + 1n, String(d.c), d.a, d.b, d.c, d.n + 1]"),
          document),
      R"(["bigint",100000000000000000001,9007199254740994,"-150000000000000000",1e20,)"
      R"(9007199254740993.0,-1.5e17,1001])");
  EXPECT_EQ(Say(*Exact("(d) => { const a = d.a; d.a -= 0n; return [d.a, a]; }"), document),
            "[100000000000000000000,1e20]");
}

// Each of these scripts would get another number than the document has.
TEST(Js, NothingRoundsANumberBeyond2To53InSilence) {
  const std::string document =
      R"({"id":9007199254740993,"big":1e300,"huge":1e400,"half":12345678901234567.89,)"
      R"("far":1e99999,"text":"9007199254740993","n":9007199254740991,"list":[12345678901234567.89]})";
  for (const char* script : {
           "(d) => Number(d.id) - 1",
           "(d) => new Number(d.id) - 1",
           "(d) => Number(d.id) % 10",
           "(d) => parseInt(d.id) - 1",
           "(d) => parseFloat(d.id) - 1",
           "(d) => Number.parseInt(d.id, 10) - 1",
           "(d) => Number(d.text) - 1",
           "(d) => +d.text - 1",
           "(d) => parseInt(d.text) - 1",
           "(d) => d.text - 1",
           "(d) => d.text * 1 - 1",
           "(d) => d.text / 2",
           "(d) => -d.text",
           "(d) => { let x = d.text; x--; return x % 10; }",
           "(d) => d.text % 10",
           "(d) => d.text | 0",
           "(d) => d.text > d.n + 1",
           "(d) => d.text == d.n + 1",
           "(d) => Math.max(d.text, 1) % 10",
           "(d) => [d.text].map(Number)",
           "(d) => 1 / Number('1e400')",
           "(d) => 1 / parseFloat('1e400')",
           "(d) => 1 / parseInt('9'.repeat(400))",
           "(d) => String(d.n + 2)",
           "(d) => `${d.n * 3}`",
           "(d) => '' + d.n * 3",
           "(d) => (d.n * 3).toString(16)",
           "(d) => (d.n * 3).toFixed(0)",
           "(d) => ({[d.n * 3]: 1})",
           "(d) => JSON.stringify({x: d.n * 3})",
           "(d) => d.big / 1e299",
           "(d) => Math.log10(d.big)",
           "(d) => Number(d.big) / 1e299",
           "(d) => 1 / Number(d.huge)",
           "(d) => `${d.half}`",
           "(d) => String(d.half)",
           "(d) => d.half.toString()",
           "(d) => d.half + 1",
           "(d) => d.half - 12345678901234567",
           "(d) => d.half < 5",
           "(d) => d.half == 5",
           "(d) => Number(d.half)",
           "(d) => BigInt(d.half)",
           "(d) => Math.floor(d.half)",
           "(d) => ({...d.half})",
           "(d) => Object.keys(d.half)",
           "(d) => d.half.x = 1",
           "(d) => 'x' in d.half",
           "(d) => [d.half].join()",
           "(d) => d.list.sort((a, b) => a - b).concat(d.list).sort()",
           "(d) => JSON.stringify(d.n * 3)",
           "(d) => d.far * 0",
           "(d) => { for (const x in d.half); return 1; }",
       }) {
    const std::string said = Say(*Exact(script), document);
    EXPECT_TRUE(said.starts_with("error: ")) << script << ": " << said;
  }
  EXPECT_EQ(Say(*Exact("(d) => [typeof d.half, d.half, {x: d.far}, d.list, d.half ? 1 : 2,"
                       " JSON.stringify(d.half), d.huge, d.big, Number(d.n), `${d.n}`]"),
                document),
            R"(["number",12345678901234567.89,{"x":1e99999},[12345678901234567.89],1,)"
            R"("12345678901234567.89",1e400,1e300,9007199254740991,"9007199254740991"])");
  EXPECT_EQ(Say(*Exact("(d) => [1 / Number('Infinity'), 1 / parseFloat(' -Infinity'), '12' * 2,"
                       " d.text == d.id, d.text + 1]"),
                document),
            R"([0,0,24,true,"90071992547409931"])");
  const std::string said = Say(*Exact("(d) => d.half + 1"), document);
  EXPECT_NE(said.find("12345678901234567.89 is beyond 2^53"), std::string::npos) << said;
}

TEST(Js, NumbersThatCanOnlyBeMovedAreComparedByTheirValue) {
  const std::string document =
      R"({"a":12345678901234567.89,"b":12345678901234567.890,"c":12345678901234567.88,"d":{}})";
  EXPECT_EQ(Say(*Exact("(d) => [d.a === d.a, d.a === d.b, d.a == d.b, d.a !== d.b, d.a === d.c,"
                       " d.a === d.d, d.d === d.a, d.d === {}, [d.a].includes(d.b),"
                       " [d.c, d.a].indexOf(d.b), Object.is(d.a, d.b)]"),
                document),
            "[true,true,true,false,false,false,false,false,true,1,true]");
}

TEST(Js, FloatsPrintLargeNumbersAsTheyAre) {
  EXPECT_EQ(RunOnce("(d) => [String(d * 3), Number(10n ** 30n), parseFloat('1e300')]",
                    "9007199254740991"),
            R"(["27021597764222972",1e+30,1e+300])");
}

TEST(Js, ComputedFloatBeyond2To53IsAnError) {
  for (const char* script : {"(d) => d.a * 1e10", "(d) => ({a: [-d.a * 1e10]})",
                             "(d) => 9007199254740992", "(d) => JSON.stringify(d.a * 1e10)"}) {
    const std::string said = Say(*Exact(script), R"({"a":9007199254740991})");
    EXPECT_NE(said.find("use BigInt"), std::string::npos) << script << ": " << said;
  }
  EXPECT_EQ(
      Say(*Exact("(d) => [d.a - 1, BigInt(d.a) * 10n, 0.1 + 0.2]"), R"({"a":9007199254740991})"),
      "[9007199254740990,90071992547409910,0.30000000000000004]");
}

TEST(Js, NumberThatJsonCannotRepresentIsAnError) {
  for (const char* script :
       {"(d) => 0 / d.a", "(d) => ({b: [Number(d.text)]})", "(d) => d.none + 1", "(d) => -1 / d.a",
        "(d) => ({...d, b: Math.log(0)})"}) {
    const std::string said = Say(*Exact(script), R"({"a":0,"text":"x"})");
    EXPECT_NE(said.find(", which JSON cannot represent"), std::string::npos)
        << script << ": " << said;
  }
  EXPECT_EQ(Say(*Exact("(d) => [isNaN(0 / d.a), d.none ?? null]"), R"({"a":0})"), "[true,null]");
}

TEST(Js, ValuesKeptFromADocumentDoNotAffectTheNext) {
  const auto function =
      Exact("let kept = null;\n(d) => { const last = kept; kept = d; return last; }");
  EXPECT_EQ(Say(*function, "[1.0,2.50,9007199254740993]"), "null");
  EXPECT_EQ(Say(*function, "[1.00,3.0]"), "[1,2.5,9007199254740993]");
}

TEST(Js, ManyNumbersCountAsMemory) {
  const auto function =
      JsFunction::Compile("(d) => { for (;;) JSON.parse('[1.0,1.0,1.0,1.0]'); }", "test.js",
                          {.time = milliseconds(60'000), .memory_bytes = size_t{2} << 20}, nullptr,
                          JsNumbers::kExact)
          .value();
  EXPECT_NE(Say(*function, "1").find("too many numbers"), std::string::npos);
  EXPECT_NE(Say(*function, "1").find("too many numbers"), std::string::npos);
}

TEST(Js, ErrorsSayWhere) {
  EXPECT_EQ(RunOnce("(doc) =>\n  doc.missing.field", "{}"),
            "error: test.js:2:3: TypeError: cannot read property 'field' of undefined");
  EXPECT_EQ(RunOnce("function f(doc) {\n  throw new RangeError('no ' + doc);\n}\nf", "7"),
            "error: test.js:2:32: RangeError: no 7");
  EXPECT_EQ(RunOnce("(doc) => { throw 'a text'; }", "1"), "error: test.js: a text");
  EXPECT_EQ(RunOnce("(doc) => {\n  return 1 +;\n}", "1"),
            "error: test.js:2:13: SyntaxError: unexpected token in expression: ';'");
  EXPECT_EQ(RunOnce("42", "1"),
            "error: test.js: the value of the script is not a function (end it with a function: "
            "(doc) => ..., or the name of one)");
}

TEST(Js, InvalidJsonArgumentIsAnError) {
  const std::string said = RunOnce("(doc) => doc", "{\"a\":");
  EXPECT_EQ(said.find("error: argument 1 is not JSON"), 0U) << said;
}

TEST(Js, ResultThatIsNotJsonIsAnError) {
  EXPECT_EQ(RunOnce("(doc) => { doc.self = doc; return doc; }", "{}"),
            "error: the result is not JSON: test.js: TypeError: circular reference");
  EXPECT_EQ(RunOnce("(doc) => () => 1", "1"),
            "error: test.js: the result is a function or symbol, not JSON");
  EXPECT_NE(RunOnce("(doc) => 10n", "1").find("TypeError: BigInt"), std::string::npos);
}

TEST(Js, InfiniteRecursionIsAnErrorAndTheNextCallWorks) {
  const auto function = Compiled("function f(n) { return n === 0 ? 0 : 1 + f(n - 1); }\nf");
  EXPECT_NE(Say(*function, "1e9").find("RangeError: Maximum call stack size exceeded"),
            std::string::npos);
  EXPECT_EQ(Say(*function, "100"), "100");
}

TEST(Js, LongMessageIsTruncated) {
  const std::string said = RunOnce("(doc) => { throw new Error('y'.repeat(1e6)); }", "1");
  EXPECT_LT(said.size(), 2000U);
}

TEST(Js, VariablesLiveUntilALimitIsExceeded) {
  const auto function = Compiled(
      "let calls = 0;\n"
      "(stop) => { ++calls; if (stop) for (;;); return calls; }",
      kTight);
  EXPECT_EQ(Say(*function, "false"), "1");
  EXPECT_EQ(Say(*function, "false"), "2");
  EXPECT_EQ(Say(*function, "true"),
            "error: test.js: stopped after 50 ms (look for an infinite loop, or allow it more "
            "time)");
  EXPECT_EQ(Say(*function, "false"), "1");
}

// The result of the function `name`; "none" if the script does not have it.
std::string RunMember(const std::string& name, std::string_view source) {
  const auto function =
      JsFunction::CompileMember(source, "test.js", {.name = name, .known = {"one", "two"}}, kTight);
  if (!function) return "error: " + function.error().ToString();
  return *function == nullptr ? "none" : Say(**function, "1.0");
}

TEST(Js, AScriptMayBeAnObjectOfFunctions) {
  EXPECT_EQ(RunMember("one", "(x) => [x]"), "[1.0]");
  EXPECT_EQ(RunMember("two", "(x) => [x]"), "none");
  const char* const both = "const f = (x) => [x]; ({one: f, two(x) { return [this.one(x), x] }})";
  EXPECT_EQ(RunMember("one", both), "[1.0]");
  EXPECT_EQ(RunMember("two", both), "[[1.0],1.0]");
  EXPECT_EQ(RunMember("one", "({})"), "none");
  EXPECT_EQ(RunMember("one", "({two: (x) => x})"), "none");
}

TEST(Js, ObjectsThatAreNotOfFunctionsDoNotCompile) {
  for (const auto& [source, says] : {
           std::pair("({three: (x) => x})", "has 'three', which is not one of its functions"),
           std::pair("({one: 5})", "has 'one'"),
           std::pair("5", "not a function"),
           std::pair("null", "not a function"),
           std::pair("({get one() { throw new Error('mine') }})", "mine"),
           std::pair("({get one() { for (;;); }})", "stopped after 50 ms"),
           std::pair("new Proxy({}, {ownKeys() { for (;;); }})", "stopped after 50 ms"),
           std::pair("new Proxy({}, {ownKeys() { throw new Error('mine') }})", "mine"),
           std::pair("Array.from({length: 5e3}, () => () => 1)", "has '0'"),
       }) {
    const std::string said = RunMember("one", source);
    EXPECT_TRUE(said.starts_with("error: ") && said.find(says) != std::string::npos)
        << source << ": " << said;
  }
}

TEST(Js, ScriptThatNeverEndsDoesNotCompile) {
  const auto function = JsFunction::Compile("for (;;);", "test.js", kTight);
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, Code::kInvalid);
  EXPECT_EQ(function.error().message, "test.js: stopped after 50 ms");
}

TEST(Js, EngineWithTooLittleMemoryDoesNotStart) {
  for (size_t bytes = 1000; bytes < 200'000; bytes += 4'000) {
    const auto function = JsFunction::Compile("(doc) => doc", "test.js", {.memory_bytes = bytes});
    if (function) continue;
    EXPECT_NE(function.error().message.find("KiB of memory it may have"), std::string::npos);
  }
}

TEST(Js, StackLimitIsPerThread) {
  const auto function = Compiled("(doc) => JSON.parse('[[[[[[1]]]]]]')[0][0][0][0][0][0] + doc");
  std::string said;
  std::thread([&] { said = Say(*function, "1"); }).join();
  EXPECT_EQ(said, "2");
  EXPECT_EQ(Say(*function, "2"), "3");
}

// Each line of the table is a script that must neither escape nor run away: it ends soon after its
// limit, as the line says, and the function can be called again.
TEST(Js, HostileScriptsEndWithinTheirLimits) {
  std::ifstream table(MUSTER_JS_CASES);
  ASSERT_TRUE(table) << MUSTER_JS_CASES;
  int cases = 0;
  for (std::string line; std::getline(table, line); ++cases) {
    const auto entry = ParseJson(line, "js.jsonl");
    ASSERT_TRUE(entry) << entry.error().ToString();
    const std::string source = entry->at("script");
    SCOPED_TRACE(source);
    const std::string says = entry->at("says");
    JsLimits limits = kTight;
    if (says.find("KiB") != std::string::npos) limits.time = milliseconds(5'000);
    const auto function =
        Compiled("const run = " + source + ";\n(doc) => doc === 0 ? 'alive' : run(doc)", limits);
    const auto start = steady_clock::now();
    const std::string said = Say(*function, R"({"a":1})");
    EXPECT_LT(steady_clock::now() - start, limits.time + milliseconds(5'000));
    EXPECT_NE(said.find(says), std::string::npos) << said;
    EXPECT_EQ(Say(*function, "0"), "\"alive\"");
  }
  EXPECT_GT(cases, 50);
}

}  // namespace
}  // namespace muster::script
