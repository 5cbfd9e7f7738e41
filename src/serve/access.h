#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "serve/sessions.h"
#include "serve/web_message.h"

namespace muster::serve {

// The tokens of this installation, created in `path` if that does not exist, readable only by its
// owner. kPermission: others can read the file, or it belongs to another user.
Result<Tokens> LoadTokens(const std::string& path);

struct Caller {
  Role role = Role::kViewer;
  std::string actor;                    // for the audit log: role and address
  std::optional<Session> session = {};  // of a browser; programs have none
};

// Authentication, and checks of Host and Origin.
class Access {
 public:
  // `hosts` are the server's names, with or without a port. Ended sessions are kept in
  // `ended_file`. `env` must outlive it.
  Access(const Tokens& tokens, const std::vector<std::string>& hosts, int port, bool tls,
         const std::string& ended_file, Env& env);

  // Refuses requests for another host and, unless they are reads, those that come neither from the
  // server's own page nor from a program with a token. Browsers let any page send requests here,
  // but not fake their origin.
  std::optional<WebResponse> RefuseOrigin(const WebRequest& request) const;

  // None: not authenticated.
  std::optional<Caller> Identify(const WebRequest& request) const;

  // The session cookie for a token; none: unknown token.
  std::optional<std::string> Login(std::string_view token) const;

  // Ends the caller's session; returns the header that deletes the cookie.
  std::string Logout(const Caller& caller) const;

  // A younger cookie if the caller's is due for renewal; the caller gets its session.
  std::optional<std::string> Renew(Caller& caller) const;

  // Whether a stream may continue: not once the session has ended, or is due for renewal, which
  // takes a new request.
  bool MayContinue(const Caller& caller) const;

 private:
  std::optional<Role> RoleOf(std::string_view token) const;
  std::optional<std::string_view> CookieOf(const WebRequest& request) const;
  std::string CookieFor(const Session& session) const;
  std::string Attributes() const;

  const Tokens tokens_;
  const bool tls_;
  const std::string cookie_;  // its name: browsers send one port's cookies to all others
  const std::shared_ptr<Sessions> sessions_;
  std::vector<std::string> hosts_;    // as in Host
  std::vector<std::string> origins_;  // as in Origin
};

}  // namespace muster::serve
