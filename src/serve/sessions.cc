#include "serve/sessions.h"

#include <unistd.h>

#include <charconv>
#include <fstream>

#include "core/log.h"
#include "core/mutex.h"
#include "core/secrets.h"
#include "core/sha256.h"

namespace muster::serve {
namespace {

std::optional<WallTime> TimeOf(std::string_view text) {
  int64_t ms = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return WallTime(std::chrono::milliseconds(ms));
}

std::string TextOf(WallTime time) { return std::to_string(time.time_since_epoch().count()); }

}  // namespace

std::string_view RoleName(Role role) { return role == Role::kOperator ? "operator" : "viewer"; }

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

Sessions::Sessions(Tokens tokens, int port, std::string ended_file, Env& env)
    : tokens_(std::move(tokens)), port_(port), ended_file_(std::move(ended_file)), env_(env) {
  ReadEnded();
}

Session Sessions::Begin(Role role) {
  return {.id = env_.NewId(), .role = role, .issued = env_.WallNow()};
}

Session Sessions::Renew(const Session& session) const {
  return {.id = session.id, .role = session.role, .issued = env_.WallNow()};
}

std::string Sessions::ValueOf(const Session& session) const {
  const std::string signature = SignatureOf(session);
  RememberSecret(signature);
  return session.id + "." + TextOf(session.issued) + "." + signature;
}

std::string Sessions::SignatureOf(const Session& session) const {
  const bool is_operator = session.role == Role::kOperator;
  return Hex(HmacSha256(
      is_operator ? tokens_.for_operator : tokens_.for_viewer,
      "muster session " + std::to_string(port_) + " " + session.id + " " + TextOf(session.issued)));
}

std::optional<Session> Sessions::Find(std::string_view value) const {
  const size_t first = value.find('.');
  const size_t second = first == value.npos ? first : value.find('.', first + 1);
  if (second == value.npos) return std::nullopt;
  const auto issued = TimeOf(value.substr(first + 1, second - first - 1));
  if (!issued) return std::nullopt;
  for (const Role role : {Role::kOperator, Role::kViewer}) {
    Session session{.id = std::string(value.substr(0, first)), .role = role, .issued = *issued};
    if (!SameSecret(value.substr(second + 1), SignatureOf(session))) continue;
    if (IsAlive(session)) return session;
  }
  return std::nullopt;
}

bool Sessions::IsAlive(const Session& session) const {
  if (Age(session) >= kLife) return false;
  const MutexLock lock(mutex_);
  return !ended_.contains(session.id);
}

std::chrono::milliseconds Sessions::Age(const Session& session) const {
  return env_.WallNow() - session.issued;
}

void Sessions::End(const Session& session) {
  // Another page may have been given a younger cookie a moment ago.
  const WallTime now = env_.WallNow();
  {
    const MutexLock lock(mutex_);
    if (!ended_.emplace(session.id, now).second) return;
  }
  Status written = ended_file_.Append(session.id + " " + TextOf(now));
  if (written) written = ended_file_.Sync();
  if (!written) {
    Log(Level::kWarning, "a logout will not survive a restart",
        {{"error", written.error().message}});
  }
}

// The file goes when all in it have expired: there are few, and no other process has this port.
void Sessions::ReadEnded() {
  std::ifstream in(ended_file_.path());
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    if (space == line.npos) continue;  // torn
    const auto time = TimeOf(std::string_view(line).substr(space + 1));
    if (time && env_.WallNow() - *time < kLife) ended_[line.substr(0, space)] = *time;
  }
  in.close();
  if (ended_.empty()) unlink(ended_file_.path().c_str());
}

}  // namespace muster::serve
