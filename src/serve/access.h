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

// The tokens of this installation, drawn and written to `path` if that is not there, readable for
// its owner alone. kPermission: others may read the file, or it is somebody else's.
Result<Tokens> LoadTokens(const std::string& path);

struct Caller {
  Role role = Role::kViewer;
  std::string actor;                    // for the audit log: role and address
  std::optional<Session> session = {};  // of a browser; programs have none
};

// Who may come, by what they send.
class Access {
 public:
  // `hosts` are the names, with or without a port, by which the server is meant. Sessions that were
  // ended are kept in `ended_file`. `env` must outlive it.
  Access(const Tokens& tokens, const std::vector<std::string>& hosts, int port, bool tls,
         const std::string& ended_file, Env& env);

  // Whether the request is meant for this server and, unless it is a read, comes from its own page
  // or from a program with a token. Browsers let any page send requests here; what they cannot do
  // is lie about where those come from.
  std::optional<WebResponse> RefuseOrigin(const WebRequest& request) const;

  // Who it is; none: nobody that we know.
  std::optional<Caller> Identify(const WebRequest& request) const;

  // The cookie for whoever knows a token; none: it is no token.
  std::optional<std::string> Login(std::string_view token) const;

  // Ends the caller's session, and takes the cookie away.
  std::string Logout(const Caller& caller) const;

  // A younger cookie, if the caller's is to be replaced; they have its session from then on.
  std::optional<std::string> Renew(Caller& caller) const;

  // Whether a long answer may go on: a session may end meanwhile, and one that is to be renewed has
  // to come back for that.
  bool MayGoOn(const Caller& caller) const;

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
