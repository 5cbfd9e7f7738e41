#include "states/asl/intrinsic.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/json_equal.h"
#include "core/sha256.h"
#include "states/asl/query.h"

namespace muster::states {
namespace {

constexpr size_t kMaxTextChars = 10'000;
constexpr int64_t kMaxRangeItems = 1'000;

using Arguments = std::vector<Json>;
// The error is the reason alone; the caller adds the rest of AWS's message.
using Answer = Expected<Json, std::string>;

Unexpected<std::string> Bad(std::string what) { return Unexpected(std::move(what)); }

// As AWS and Java round: halves go up, also below zero.
Expected<int64_t, std::string> Whole(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return Bad("Expected a number but got: " + ToJsonText(value));
  const double rounded = std::floor(value.get<double>() + 0.5);
  if (!(rounded >= -9.2e18 && rounded <= 9.2e18))
    return Bad("The number is out of range: " + ToJsonText(value));
  return static_cast<int64_t>(rounded);
}

// Objects and arrays inside a text are formatted like Java collections.
std::string JavaText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& element : value) text += (text.size() > 1 ? ", " : "") + JavaText(element);
    return text + "]";
  }
  if (value.is_object()) {
    std::string text = "{";
    for (const auto& [key, member] : value.items()) {
      text += (text.size() > 1 ? ", " : "") + key + "=" + JavaText(member);
    }
    return text + "}";
  }
  return ToJsonText(value);
}

Answer Format(const Arguments& arguments) {
  if (!arguments[0].is_string()) return Bad("The template must be a string.");
  const auto& pattern = arguments[0].get_ref<const std::string&>();
  std::string text;
  size_t next = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size() &&
        std::string_view("{}'\\").find(pattern[i + 1]) != std::string_view::npos) {
      text += pattern[++i];
    } else if (pattern[i] == '{' && i + 1 < pattern.size() && pattern[i + 1] == '}') {
      ++i;
      if (next == arguments.size()) {
        return Bad("The number of arguments does not match the number of occurrences of {}.");
      }
      text += JavaText(arguments[next++]);
    } else {
      text += pattern[i];
    }
  }
  if (next != arguments.size()) {
    return Bad("The number of arguments does not match the number of occurrences of {}.");
  }
  return text;
}

Answer StringToJson(const Arguments& arguments) {
  if (!arguments[0].is_string()) return Bad("The argument must be a string.");
  const auto& text = arguments[0].get_ref<const std::string&>();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json(nullptr);
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return Bad("The string is not valid JSON: " + text.substr(0, 200));
  return value;
}

Answer ArrayPartition(const Arguments& arguments) {
  const auto size = Whole(arguments[1]);
  if (!arguments[0].is_array()) return Bad("The first argument must be an array.");
  if (!size || *size <= 0) return Bad("The chunk size must be a positive integer.");
  Json chunks = Json::array();
  for (const Json& element : arguments[0]) {
    if (chunks.empty() || static_cast<int64_t>(chunks.back().size()) == *size) {
      chunks.push_back(Json::array());
    }
    chunks.back().push_back(element);
  }
  return chunks;
}

Answer ArrayContains(const Arguments& arguments) {
  if (!arguments[0].is_array()) return Bad("The first argument must be an array.");
  return std::any_of(arguments[0].begin(), arguments[0].end(),
                     [&](const Json& element) { return JsonEqual(element, arguments[1]); });
}

Answer ArrayRange(const Arguments& arguments) {
  std::array<int64_t, 3> numbers{};
  for (size_t i = 0; i < 3; ++i) {
    const auto number = Whole(arguments[i]);
    if (!number) return Bad(number.error());
    numbers[i] = *number;
  }
  const auto [first, last, step] = numbers;
  if (step == 0) return Bad("The increment must not be zero.");
  Json range = Json::array();
  for (int64_t i = first; step > 0 ? i <= last : i >= last; i += step) {
    if (static_cast<int64_t>(range.size()) == kMaxRangeItems) {
      return Bad("The array must not have more than 1000 items.");
    }
    range.push_back(i);
    if ((step > 0 && i > INT64_MAX - step) || (step < 0 && i < INT64_MIN - step)) break;
  }
  return range;
}

Answer ArrayGetItem(const Arguments& arguments) {
  if (!arguments[0].is_array()) return Bad("The first argument must be an array.");
  const auto index = Whole(arguments[1]);
  if (!index || *index < 0 || *index >= static_cast<int64_t>(arguments[0].size())) {
    return Bad("The index is out of the range of the array.");
  }
  return arguments[0][static_cast<size_t>(*index)];
}

Answer ArrayLength(const Arguments& arguments) {
  if (!arguments[0].is_array()) return Bad("The argument must be an array.");
  return arguments[0].size();
}

Answer ArrayUnique(const Arguments& arguments) {
  if (!arguments[0].is_array()) return Bad("The argument must be an array.");
  Json unique = Json::array();
  for (const Json& element : arguments[0]) {
    const bool seen = std::any_of(unique.begin(), unique.end(),
                                  [&](const Json& other) { return JsonEqual(element, other); });
    if (!seen) unique.push_back(element);
  }
  return unique;
}

Answer Text(const Json& argument) {
  if (!argument.is_string()) return Bad("The argument must be a string.");
  if (argument.get_ref<const std::string&>().size() > kMaxTextChars) {
    return Bad("The string must not be longer than 10000 characters.");
  }
  return argument;
}

Answer Base64Encode(const Arguments& arguments) {
  Answer text = Text(arguments[0]);
  if (!text) return text;
  const auto& bytes = text->get_ref<const std::string&>();
  std::string encoded((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  encoded.resize(static_cast<size_t>(size));
  return encoded;
}

Answer Base64Decode(const Arguments& arguments) {
  Answer text = Text(arguments[0]);
  if (!text) return text;
  const auto& encoded = text->get_ref<const std::string&>();
  if (encoded.empty()) return Json("");
  std::string bytes(encoded.size(), '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(encoded.data()),
                                   static_cast<int>(encoded.size()));
  if (size < 0) return Bad("The string is not valid Base64.");
  const auto padding = static_cast<size_t>(
      std::count(encoded.end() - std::min<ptrdiff_t>(2, std::ssize(encoded)), encoded.end(), '='));
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

Answer Hash(const Arguments& arguments) {
  if (!arguments[1].is_string()) return Bad("The algorithm must be a string.");
  const auto& algorithm = arguments[1].get_ref<const std::string&>();
  const std::string data =
      arguments[0].is_string() ? arguments[0].get<std::string>() : ToJsonText(arguments[0]);
  const Result<std::string> hash = HashHex(algorithm, data);
  if (!hash) return Bad(hash.error().message);
  if (data.size() > kMaxTextChars) return Bad("The data must not be longer than 10000 characters.");
  return *hash;
}

Answer JsonMerge(const Arguments& arguments) {
  if (!arguments[0].is_object() || !arguments[1].is_object())
    return Bad("The first two arguments must be objects.");
  if (arguments[2] != Json(false))
    return Bad("Only shallow merging is supported: the third argument must be false.");
  Json merged = arguments[0];
  for (const auto& [key, value] : arguments[1].items()) merged[key] = value;
  return merged;
}

// java.util.Random, so that a seed gives the same numbers as on AWS.
class JavaRandom {
 public:
  explicit JavaRandom(int64_t seed) : state_((static_cast<uint64_t>(seed) ^ kMultiplier) & kMask) {}

  int64_t Below(int64_t bound) {
    if (bound <= INT32_MAX) {
      const auto small = static_cast<int32_t>(bound);
      if ((small & -small) == small) {
        return static_cast<int64_t>(
            (static_cast<uint64_t>(small) * static_cast<uint64_t>(Next(31))) >> 31);
      }
      for (;;) {
        const int32_t bits = Next(31);
        const int32_t value = bits % small;
        if (static_cast<int64_t>(bits) - value + (small - 1) <= INT32_MAX) return value;
      }
    }
    const uint64_t bits = (static_cast<uint64_t>(static_cast<uint32_t>(Next(32))) << 32) |
                          static_cast<uint32_t>(Next(32));
    return static_cast<int64_t>(bits % static_cast<uint64_t>(bound));
  }

 private:
  static constexpr uint64_t kMultiplier = 0x5DEECE66D;
  static constexpr uint64_t kMask = (uint64_t{1} << 48) - 1;

  int32_t Next(int bits) {
    state_ = (state_ * kMultiplier + 0xB) & kMask;
    return static_cast<int32_t>(static_cast<int64_t>(state_) >> (48 - bits));
  }

  uint64_t state_;
};

Answer MathRandom(const Arguments& arguments, Env& env) {
  const auto first = Whole(arguments[0]);
  const auto last = Whole(arguments[1]);
  if (!first) return Bad(first.error());
  if (!last) return Bad(last.error());
  if (*first >= *last) return Bad("The start must be less than the end.");
  const int64_t span = *last - *first;
  if (span <= 0) return Bad("The range is too large.");
  if (arguments.size() == 3) {
    const auto seed = Whole(arguments[2]);
    if (!seed) return Bad(seed.error());
    return *first + JavaRandom(*seed).Below(span);
  }
  return *first + static_cast<int64_t>(env.Random() % static_cast<uint64_t>(span));
}

Answer MathAdd(const Arguments& arguments) {
  const auto a = Whole(arguments[0]);
  const auto b = Whole(arguments[1]);
  if (!a) return Bad(a.error());
  if (!b) return Bad(b.error());
  int64_t sum = 0;
  if (__builtin_add_overflow(*a, *b, &sum)) return Bad("The sum is out of range.");
  return sum;
}

// Every character of the second argument is a delimiter; empty pieces are dropped.
Answer StringSplit(const Arguments& arguments) {
  if (!arguments[0].is_string() || !arguments[1].is_string())
    return Bad("The arguments must be strings.");
  const auto& text = arguments[0].get_ref<const std::string&>();
  const auto& separators = arguments[1].get_ref<const std::string&>();
  Json parts = Json::array();
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find_first_of(separators, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

Answer Uuid(Env& env) {
  std::string id = env.NewId();
  id[12] = '4';
  id[16] = "89ab"[static_cast<unsigned char>(id[16]) % 4];
  for (size_t at : {8, 13, 18, 23}) id.insert(at, "-");
  return id;
}

Answer Call(const std::string& name, const Arguments& arguments, Env& env) {
  if (name == "Format") return Format(arguments);
  if (name == "StringToJson") return StringToJson(arguments);
  if (name == "JsonToString") return ToJsonText(arguments[0]);
  if (name == "Array") return Json(arguments);
  if (name == "ArrayPartition") return ArrayPartition(arguments);
  if (name == "ArrayContains") return ArrayContains(arguments);
  if (name == "ArrayRange") return ArrayRange(arguments);
  if (name == "ArrayGetItem") return ArrayGetItem(arguments);
  if (name == "ArrayLength") return ArrayLength(arguments);
  if (name == "ArrayUnique") return ArrayUnique(arguments);
  if (name == "Base64Encode") return Base64Encode(arguments);
  if (name == "Base64Decode") return Base64Decode(arguments);
  if (name == "Hash") return Hash(arguments);
  if (name == "JsonMerge") return JsonMerge(arguments);
  if (name == "MathRandom") return MathRandom(arguments, env);
  if (name == "MathAdd") return MathAdd(arguments);
  if (name == "StringSplit") return StringSplit(arguments);
  return Uuid(env);
}

}  // namespace

std::vector<std::string> Intrinsic::LiteralPieces() const {
  const Json* pattern = arguments.empty() ? nullptr : std::get_if<Json>(&arguments[0]);
  if (name != "Format" || pattern == nullptr || !pattern->is_string()) return {};
  // Marks the place of an argument; a template that contains the mark itself is not split.
  constexpr char kMark = '\x1f';
  if (pattern->get_ref<const std::string&>().find(kMark) != std::string::npos) return {};
  Arguments values(arguments.size(), Json(std::string(1, kMark)));
  values[0] = *pattern;
  const Answer written = Format(values);
  if (!written) return {};
  std::vector<std::string> pieces(1);
  for (const char c : written->get_ref<const std::string&>()) {
    if (c == kMark) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

Fallible<Json> Intrinsic::Evaluate(const Scope& scope) const {
  const std::string prefix = "The function '" + text + "' had the following error: ";
  Arguments values;
  values.reserve(arguments.size());
  for (const Argument& argument : arguments) {
    if (const Json* literal = std::get_if<Json>(&argument)) {
      values.push_back(*literal);
    } else if (const auto* nested = std::get_if<std::shared_ptr<const Intrinsic>>(&argument)) {
      STATES_ASSIGN(Json value, (*nested)->Evaluate(scope));
      values.push_back(std::move(value));
    } else {
      const Query& query = *std::get<std::shared_ptr<const Query>>(argument);
      auto value = query.Find(scope);
      if (!value) {
        return RuntimeFailure(prefix + "The JsonPath argument for the field '" + query.text +
                              "' could not be found in the input '" + ToJsonText(*scope.input) +
                              "'");
      }
      values.push_back(*std::move(value));
    }
  }
  Answer answer = Call(name, values, *scope.env);
  if (!answer) return Fail(kIntrinsicFailure, prefix + answer.error());
  return *std::move(answer);
}

}  // namespace muster::states
