#include "serve/access.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/file.h"
#include "core/file_output.h"
#include "core/secrets.h"
#include "core/sha256.h"

namespace muster::serve {
namespace {

constexpr char kCookie[] = "muster_session_";
constexpr size_t kTokenBytes = 32;
constexpr size_t kSuffixDigits = 16;
constexpr size_t kMaxFileBytes = 4096;

Result<std::string> NewToken() {
  std::string bytes(kTokenBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Error{Code::kInternal, "the system's random number generator failed"};
  }
  return Hex(bytes);
}

Error NoTokens(const std::string& path, const std::string& why, const std::string& hint) {
  return {Code::kPermission, "the tokens in " + path + " cannot be used: " + why, hint};
}

Status CreateTokens(const std::string& path) {
  MUSTER_ASSIGN(const std::string for_operator, NewToken());
  MUSTER_ASSIGN(const std::string for_viewer, NewToken());
  const std::string text = "operator " + for_operator + "\nviewer " + for_viewer + "\n";
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  // A name that nothing else can have prepared a link of.
  MUSTER_ASSIGN(const std::string suffix, NewToken());
  const std::string fresh = path + "." + suffix.substr(0, kSuffixDigits);
  Status created = ReplaceFile(fresh, text, FileAccess::kOwner);
  // Fails if the file exists: two servers that start together share one set of tokens.
  if (created && link(fresh.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    created = FileError("create", path, errno);
  }
  unlink(fresh.c_str());
  if (created) created = SyncFolderOf(path);
  if (created) return {};
  return Error{Code::kInvalid, created.error().message, "name another file with --token-file"};
}

std::optional<std::string_view> BearerOf(const WebRequest& request) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto header = request.Header("Authorization");
  if (!header || !header->starts_with(kScheme)) return std::nullopt;
  return header->substr(kScheme.size());
}

}  // namespace

Result<Tokens> LoadTokens(const std::string& path) {
  Tokens tokens;
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    MUSTER_TRY(CreateTokens(path));
    tokens.created = true;
    if (lstat(path.c_str(), &info) != 0) return NoTokens(path, std::strerror(errno), "");
  }
  if (!S_ISREG(info.st_mode)) return NoTokens(path, "it is not a regular file", "remove it");
  if (info.st_uid != geteuid()) {
    return NoTokens(path, "the file belongs to another user", "name another one with --token-file");
  }
  if ((info.st_mode & 077) != 0) {
    return NoTokens(path, "it is readable by others",
                    "remove it, since the tokens may be known, and start again");
  }
  MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxFileBytes));
  const auto value = [&](const std::string& name) {
    const size_t start = text.starts_with(name + " ") ? 0 : text.find("\n" + name + " ");
    if (start == text.npos) return std::string();
    const size_t begin = text.find(' ', start) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  tokens.for_operator = value("operator");
  tokens.for_viewer = value("viewer");
  if (tokens.for_operator.size() < kTokenBytes || tokens.for_viewer.size() < kTokenBytes) {
    return NoTokens(path, "it has no tokens", "remove it: a new one will be created");
  }
  RememberSecret(tokens.for_operator);
  RememberSecret(tokens.for_viewer);
  return tokens;
}

Access::Access(const Tokens& tokens, const std::vector<std::string>& hosts, int port, bool tls,
               const std::string& ended_file, Env& env)
    : tokens_(tokens),
      tls_(tls),
      cookie_(kCookie + std::to_string(port)),
      sessions_(std::make_shared<Sessions>(tokens, port, ended_file, env)) {
  const std::string suffix = ":" + std::to_string(port);
  for (const std::string& host : hosts) {
    const bool bare = host.find(':') == host.npos || host.ends_with(']');
    if (bare) hosts_.push_back(host + suffix);
    if (!bare || port == (tls ? 443 : 80)) hosts_.push_back(host);
  }
  for (const std::string& host : hosts_) origins_.push_back((tls ? "https://" : "http://") + host);
}

std::optional<WebResponse> Access::RefuseOrigin(const WebRequest& request) const {
  const auto has = [](const std::vector<std::string>& all, std::string_view one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const auto host = request.Header("Host");
  if (!host || !has(hosts_, *host)) {
    return WebResponse::OfProblem(403, "forbidden", "unknown Host",
                                  "use the address that the server printed, or allow the name with "
                                  "--allow-host");
  }
  if (request.IsRead()) return std::nullopt;
  const auto origin = request.Header("Origin");
  const bool program = !request.HasHeader("Origin") && BearerOf(request);
  if (program || (origin && has(origins_, *origin))) return std::nullopt;
  return WebResponse::OfProblem(403, "forbidden", "cross-origin request",
                                "programs send a bearer token and no Origin");
}

std::optional<Role> Access::RoleOf(std::string_view token) const {
  if (SameSecret(token, tokens_.for_operator)) return Role::kOperator;
  if (SameSecret(token, tokens_.for_viewer)) return Role::kViewer;
  return std::nullopt;
}

std::optional<std::string_view> Access::CookieOf(const WebRequest& request) const {
  const auto header = request.Header("Cookie");
  if (!header) return std::nullopt;
  for (std::string_view rest = *header; !rest.empty();) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (!pair.starts_with(cookie_) || pair.substr(cookie_.size(), 1) != "=") continue;
    return pair.substr(cookie_.size() + 1);
  }
  return std::nullopt;
}

std::optional<Caller> Access::Identify(const WebRequest& request) const {
  std::optional<Role> role;
  std::optional<Session> session;
  if (request.HasHeader("Authorization")) {
    const auto bearer = BearerOf(request);
    if (bearer) role = RoleOf(*bearer);
  } else if (const auto cookie = CookieOf(request)) {
    session = sessions_->Find(*cookie);
    if (session) role = session->role;
  }
  if (!role) return std::nullopt;
  return Caller{*role, std::string(RoleName(*role)) + "@" + request.peer, std::move(session)};
}

std::string Access::Attributes() const {
  return std::string("; Path=/; HttpOnly; SameSite=Strict") + (tls_ ? "; Secure" : "");
}

std::string Access::CookieFor(const Session& session) const {
  const std::chrono::seconds life = Sessions::kLife;
  return cookie_ + "=" + sessions_->ValueOf(session) + Attributes() +
         "; Max-Age=" + std::to_string(life.count());
}

std::optional<std::string> Access::Login(std::string_view token) const {
  const auto role = RoleOf(token);
  if (!role) return std::nullopt;
  return CookieFor(sessions_->Begin(*role));
}

std::string Access::Logout(const Caller& caller) const {
  if (caller.session) sessions_->End(*caller.session);
  return cookie_ + "=" + Attributes() + "; Max-Age=0";
}

std::optional<std::string> Access::Renew(Caller& caller) const {
  if (!caller.session || sessions_->IsFresh(*caller.session)) return std::nullopt;
  caller.session = sessions_->Renew(*caller.session);
  return CookieFor(*caller.session);
}

bool Access::MayContinue(const Caller& caller) const {
  return !caller.session ||
         (sessions_->IsAlive(*caller.session) && sessions_->IsFresh(*caller.session));
}

}  // namespace muster::serve
