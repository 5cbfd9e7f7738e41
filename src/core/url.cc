#include "core/url.h"

#include <charconv>
#include <filesystem>
#include <system_error>

namespace muster {
namespace {

constexpr size_t kMaxUrlBytes = 8192;

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Error Invalid(std::string what, std::string hint) {
  return Error{Code::kInvalid, "invalid URL: " + std::move(what), std::move(hint)};
}

// The end of the secret reference at `at`; `at` if there is none.
size_t SkipReference(std::string_view text, size_t at) {
  if (text.substr(at, 2) != "${") return at;
  size_t close = text.find('}', at);
  return close == std::string_view::npos ? at : close + 1;
}

// The first of `separators` outside secret references; the text's end if none.
size_t FindSeparator(std::string_view text, std::string_view separators) {
  for (size_t i = 0; i < text.size();) {
    if (size_t next = SkipReference(text, i); next != i) {
      i = next;
    } else if (separators.find(text[i]) != std::string_view::npos) {
      return i;
    } else {
      ++i;
    }
  }
  return text.size();
}

size_t FindLastSeparator(std::string_view text, char separator) {
  size_t last = text.size();
  for (size_t i = FindSeparator(text, {&separator, 1}); i < text.size();) {
    last = i;
    i += 1 + FindSeparator(text.substr(i + 1), {&separator, 1});
  }
  return last;
}

// The text before the first of `separators`; `rest` keeps the remainder, separator included.
std::string_view TakeUntil(std::string_view& rest, std::string_view separators) {
  size_t end = FindSeparator(rest, separators);
  std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end);
  return taken;
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> Decode(std::string_view text, std::string_view part) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (size_t next = SkipReference(text, i); next != i) {
      decoded += text.substr(i, next - i);
      i = next;
      continue;
    }
    if (text[i] != '%') {
      decoded += text[i++];
      continue;
    }
    int high = i + 1 < text.size() ? HexValue(text[i + 1]) : -1;
    int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return Invalid("a % in the " + std::string(part) + " is not followed by two hex digits",
                     "write a literal % as %25");
    }
    if (high == 0 && low == 0) return Invalid("%00 in the " + std::string(part), "remove it");
    decoded += static_cast<char>(high * 16 + low);
    i += 3;
  }
  return decoded;
}

Status ParsePort(std::string_view text, Url& url) {
  if (text.empty()) return {};
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    return Invalid("the port is not a number from 1 to 65535",
                   "if a user name or password contains one of @ : / ? #, write it percent-encoded "
                   "(@ as %40)");
  }
  url.port = port;
  return {};
}

Status ParseAuthority(std::string_view text, Url& url) {
  if (size_t at = FindLastSeparator(text, '@'); at < text.size()) {
    std::string_view password = text.substr(0, at);
    MUSTER_ASSIGN(url.user, Decode(TakeUntil(password, ":"), "user name"));
    if (!password.empty()) password.remove_prefix(1);
    MUSTER_ASSIGN(url.password, Decode(password, "password"));
    text.remove_prefix(at + 1);
  }
  if (text.starts_with('[')) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return Invalid("an IPv6 host lacks its ]", "write [::1]");
    url.host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (!text.empty() && text[0] != ':') {
      return Invalid("the host is followed by something that is not a port", "write [::1]:5432");
    }
  } else {
    MUSTER_ASSIGN(url.host, Decode(TakeUntil(text, ":"), "host"));
  }
  if (!text.empty()) text.remove_prefix(1);
  return ParsePort(text, url);
}

Status ParseQuery(std::string_view text, Url& url) {
  while (!text.empty()) {
    std::string_view value = TakeUntil(text, "&");
    if (!text.empty()) text.remove_prefix(1);
    if (value.empty()) continue;
    std::string_view name = TakeUntil(value, "=");
    if (!value.empty()) value.remove_prefix(1);
    MUSTER_ASSIGN(std::string decoded_name, Decode(name, "query"));
    MUSTER_ASSIGN(std::string decoded_value, Decode(value, "query"));
    url.query.emplace_back(std::move(decoded_name), std::move(decoded_value));
  }
  return {};
}

}  // namespace

std::optional<std::string> Url::Param(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kMaxUrlBytes) return Invalid("longer than 8192 bytes", "shorten it");
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') {
      return Invalid("it contains a space or a control character", "write a space as %20");
    }
  }
  Url url;
  size_t colon = 0;
  while (colon < text.size() && (IsAlpha(text[colon]) || IsDigit(text[colon]) ||
                                 std::string_view("+-.").find(text[colon]) != std::string::npos)) {
    ++colon;
  }
  if (colon == 0 || colon == text.size() || text[colon] != ':' || !IsAlpha(text[0])) {
    return Invalid("it does not begin with a scheme such as sqlite:",
                   "write for example sqlite:muster.db or postgresql://user@host/database");
  }
  url.scheme = text.substr(0, colon);
  for (char& c : url.scheme) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  text.remove_prefix(colon + 1);
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    MUSTER_TRY(ParseAuthority(TakeUntil(text, "/?#"), url));
  }
  MUSTER_ASSIGN(url.path, Decode(TakeUntil(text, "?#"), "path"));
  if (text.starts_with('?')) {
    text.remove_prefix(1);
    MUSTER_TRY(ParseQuery(TakeUntil(text, "#"), url));
  }
  if (text.starts_with('#')) {
    MUSTER_ASSIGN(url.fragment, Decode(text.substr(1), "fragment"));
  }
  return url;
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (char c : text) {
    if (IsAlpha(c) || IsDigit(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

std::string AbsoluteUrl(std::string_view text) {
  std::string_view rest = text;
  const std::string_view scheme = TakeUntil(rest, ":/?#");
  if (scheme.empty() || !rest.starts_with(':')) return std::string(text);
  rest.remove_prefix(1);
  const std::string_view path = TakeUntil(rest, "?#");
  if (path.empty() || path.starts_with('/') || path.starts_with("${")) return std::string(text);
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed).string();
  if (failed) return std::string(text);
  std::string encoded;
  for (const char c : folder) encoded += c == '/' ? "/" : PercentEncode({&c, 1});
  const auto whole = std::filesystem::path(encoded) / std::filesystem::path(path);
  return std::string(scheme) + ":" + whole.lexically_normal().string() + std::string(rest);
}

std::string WithoutParam(std::string_view text, std::string_view name) {
  std::string_view rest = text;
  std::string url(TakeUntil(rest, "?#"));
  if (!rest.starts_with('?')) return std::string(text);
  rest.remove_prefix(1);
  std::string_view query = TakeUntil(rest, "#");
  std::string kept;
  while (!query.empty()) {
    const std::string_view param = TakeUntil(query, "&");
    if (!query.empty()) query.remove_prefix(1);
    std::string_view value = param;
    const auto decoded = Decode(TakeUntil(value, "="), "query");
    if (decoded && *decoded == name) continue;
    kept += (kept.empty() ? "?" : "&") + std::string(param);
  }
  return url + kept + std::string(rest);
}

}  // namespace muster
