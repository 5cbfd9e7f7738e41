#include "core/secrets.h"

#include <algorithm>
#include <bitset>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/file.h"
#include "core/json.h"
#include "core/shared_mutex.h"
#include "core/url.h"

namespace muster {
namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;
// URLs are decoded once; a URL inside a URL, twice.
constexpr int kMaxDecodings = 3;

std::string EscapeJson(std::string_view text, bool ascii) {
  const std::string quoted = ascii ? ToAsciiJsonString(text) : ToJsonText(text);
  return quoted.substr(1, quoted.size() - 2);
}

// The base64 characters determined by `value` alone at `offset` bytes into the encoded text, such
// as the password in an HTTP basic authentication header.
std::string Base64Core(std::string_view value, size_t offset, std::string_view digits) {
  std::string bytes = std::string(offset, '\0') + std::string(value);
  std::string encoded;
  for (size_t bit = 0; bit + 6 <= bytes.size() * 8; bit += 6) {
    auto high = static_cast<unsigned char>(bytes[bit / 8]);
    unsigned char low = bit / 8 + 1 < bytes.size() ? bytes[bit / 8 + 1] : '\0';
    unsigned word = (static_cast<unsigned>(high) << 8) | low;
    encoded += digits[(word >> (10 - bit % 8)) & 63];
  }
  return encoded.substr(offset == 0 ? 0 : offset + 1);
}

std::set<std::string> FormsOf(std::string_view value) {
  constexpr std::string_view kAlphanumeric =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::set<std::string> forms{std::string(value), PercentEncode(value), EscapeJson(value, false),
                              EscapeJson(value, true)};
  std::string lower = PercentEncode(value);
  for (size_t i = 0; i + 2 < lower.size(); ++i) {
    if (lower[i] != '%') continue;
    for (char* c : {&lower[i + 1], &lower[i + 2]}) *c = static_cast<char>(std::tolower(*c));
  }
  forms.insert(lower);
  for (std::string_view tail : {"+/", "-_"}) {
    std::string digits = std::string(kAlphanumeric) + std::string(tail);
    for (size_t offset : {0, 1, 2}) {
      std::string core = Base64Core(value, offset, digits);
      // A shorter run of letters would match ordinary words.
      if (core.size() > kMinRedactedBytes) forms.insert(core);
    }
  }
  return forms;
}

class Vault {
 public:
  void Remember(std::string_view value) {
    if (value.size() < kMinRedactedBytes) return;
    const WriterLock lock(mutex_);
    if (!values_.insert(std::string(value)).second) return;
    for (const std::string& form : FormsOf(value)) {
      std::vector<std::string>& same = forms_[BeginOf(form)];
      if (std::find(same.begin(), same.end(), form) == same.end()) same.push_back(form);
      begins_.set(BucketOf(BeginOf(form)));
    }
  }

  std::string Redact(std::string_view text) {
    const ReaderLock lock(mutex_);
    if (forms_.empty()) return std::string(text);
    // Marks all hits before replacing any, so that overlapping secrets leave no remainder. A single
    // pass whatever the number of secrets: megabytes are redacted several times a second. Few
    // positions start like a secret.
    std::vector<bool> secret;
    for (size_t at = 0; at + kMinRedactedBytes <= text.size(); ++at) {
      const uint32_t begin = BeginOf(text.substr(at));
      if (!begins_.test(BucketOf(begin))) continue;
      const auto found = forms_.find(begin);
      if (found == forms_.end()) continue;
      for (const std::string& form : found->second) {
        if (text.compare(at, form.size(), form) != 0) continue;
        secret.resize(text.size(), false);
        std::fill_n(secret.begin() + static_cast<ptrdiff_t>(at), form.size(), true);
      }
    }
    if (secret.empty()) return std::string(text);
    std::string redacted;
    for (size_t i = 0; i < text.size(); ++i) {
      if (!secret[i]) redacted += text[i];
      if (secret[i] && (i == 0 || !secret[i - 1])) redacted += "***";
    }
    return redacted;
  }

 private:
  static uint32_t BeginOf(std::string_view text) {
    uint32_t begin = 0;
    static_assert(sizeof begin == kMinRedactedBytes);
    std::memcpy(&begin, text.data(), sizeof begin);
    return begin;
  }
  static size_t BucketOf(uint32_t begin) { return (begin * 2'654'435'761U) >> 16; }

  SharedMutex mutex_;
  std::set<std::string> values_ GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, std::vector<std::string>> forms_ GUARDED_BY(mutex_);  // by prefix
  std::bitset<1 << 16> begins_ GUARDED_BY(mutex_);  // the prefixes' buckets
};

// Never destroyed: a thread may still log during exit.
Vault& TheVault() {
  static auto* vault = new Vault;
  return *vault;
}

// Replaces every %XX. False: none found.
bool DecodeOnce(std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool encoded = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    decoded += encoded ? static_cast<char>(byte) : text[i];
    if (encoded) i += 2;
  }
  if (decoded.size() == text.size()) return false;
  text = std::move(decoded);
  return true;
}

Error Refuse(std::string_view reference, std::string_view why, std::string hint) {
  return Error{Code::kInvalid,
               "secret reference " + std::string(reference) + ": " + std::string(why),
               std::move(hint)};
}

Result<std::string> ReadSecretFile(const std::string& path, std::string_view reference) {
  auto content = ReadFile(path, kMaxFileBytes);
  if (!content) return Refuse(reference, content.error().message, content.error().hint);
  if (content->ends_with('\n')) content->pop_back();
  return content;
}

struct Reference {
  bool is_file = false;
  std::string name;
};

Result<Reference> ParseReference(std::string_view reference) {
  std::string_view inner = reference.substr(2, reference.size() - 3);
  size_t colon = inner.find(':');
  std::string_view kind = inner.substr(0, colon);
  std::string name(colon == inner.npos ? "" : inner.substr(colon + 1));
  if ((kind != "env" && kind != "file") || name.empty()) {
    return Refuse(reference, "not a known kind of reference", "write ${env:NAME} or ${file:PATH}");
  }
  return Reference{kind == "file", std::move(name)};
}

Result<std::string> Resolve(std::string_view reference) {
  MUSTER_ASSIGN(const Reference parsed, ParseReference(reference));
  if (parsed.is_file) return ReadSecretFile(parsed.name, reference);
  const char* value = std::getenv(parsed.name.c_str());
  if (value == nullptr) return Refuse(reference, "not set", "set the variable " + parsed.name);
  return std::string(value);
}

// The text with each reference replaced by what `replace` returns for it.
template <class Replace>
Result<std::string> ReplaceReferences(std::string_view text, Replace replace) {
  std::string replaced;
  while (true) {
    size_t open = text.find("${");
    replaced += text.substr(0, open);
    if (open == text.npos) return replaced;
    text.remove_prefix(open);
    size_t close = text.find('}');
    if (close == text.npos) {
      // The rest may be anything, including a secret: not shown.
      return Error{Code::kInvalid, "a secret reference begins with ${ and has no }",
                   "write ${env:NAME} or ${file:PATH}"};
    }
    MUSTER_ASSIGN(const std::string value, replace(text.substr(0, close + 1)));
    replaced += value;
    text.remove_prefix(close + 1);
  }
}

}  // namespace

Result<std::string> ExpandSecrets(std::string_view text) {
  return ReplaceReferences(text, [](std::string_view reference) -> Result<std::string> {
    MUSTER_ASSIGN(std::string value, Resolve(reference));
    RememberSecret(value);
    return value;
  });
}

Status CheckSecretForms(std::string_view text) {
  const auto forms = ReplaceReferences(text, [](std::string_view one) -> Result<std::string> {
    MUSTER_TRY(ParseReference(one));
    return std::string();
  });
  return forms ? Status() : forms.error();
}

size_t CountSecretReferences(std::string_view text) {
  std::string decoded(text);
  for (int times = 0; times < kMaxDecodings && DecodeOnce(decoded);) ++times;
  size_t count = 0;
  for (size_t at = decoded.find("${"); at != decoded.npos; at = decoded.find("${", at + 2)) ++count;
  return count;
}

bool IsSecretReference(std::string_view text) {
  return (text.starts_with("${env:") || text.starts_with("${file:")) &&
         text.find('}') == text.size() - 1;
}

void RememberSecret(std::string_view value) { TheVault().Remember(value); }

std::string Redact(std::string_view text) { return TheVault().Redact(text); }

}  // namespace muster
