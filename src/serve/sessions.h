#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"
#include "core/mutex.h"
#include "muster/env.h"

namespace muster::serve {

enum class Role { kViewer, kOperator };  // each may do what those before it may
std::string_view RoleName(Role role);

// Secrets by which callers authenticate, registered with Redact.
struct Tokens {
  std::string for_operator;
  std::string for_viewer;
  bool created = false;  // just now: not handed out yet
};

// A browser that has logged in.
struct Session {
  std::string id;
  Role role = Role::kViewer;
  WallTime issued{};
};

// Session cookies, "ID.ISSUED.SIGNATURE". A cookie is signed with the token it was issued for and
// valid for one port, so that it survives a restart and works on no other server. It expires after
// twelve hours, and is renewed when used after an hour. The ids of ended sessions are kept in a
// file until their cookies would have expired.
//
// Thread-safe. `env` must outlive it.
class Sessions {
 public:
  static constexpr std::chrono::hours kLife{12};
  static constexpr std::chrono::hours kFresh{1};

  Sessions(Tokens tokens, int port, std::string ended_file, Env& env);

  Session Begin(Role role);
  // The same session, issued now.
  Session Renew(const Session& session) const;
  std::string ValueOf(const Session& session) const;

  // None: not a cookie of ours, expired, or ended.
  std::optional<Session> Find(std::string_view value) const;
  bool IsAlive(const Session& session) const;
  bool IsFresh(const Session& session) const { return Age(session) < kFresh; }

  // Invalidates all cookies of this session, also after a restart.
  void End(const Session& session);

 private:
  std::string SignatureOf(const Session& session) const;
  std::chrono::milliseconds Age(const Session& session) const;
  void ReadEnded() REQUIRES(mutex_);

  const Tokens tokens_;
  const int port_;
  AppendFile ended_file_;
  Env& env_;
  mutable Mutex mutex_;
  // By id: when the last cookie was issued.
  std::map<std::string, WallTime, std::less<>> ended_ GUARDED_BY(mutex_);
};

// Constant time for texts of one length, against guessing a secret byte by byte.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace muster::serve
