#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "serve/web_message.h"

namespace muster::serve {

enum class Role { kViewer, kOperator };
std::string_view RoleName(Role role);

// What callers prove themselves by. Secrets: Redact knows them.
struct Tokens {
  std::string for_operator;
  std::string for_viewer;
  bool created = false;  // just now: nobody knows them yet
};

// The tokens of this installation, drawn and written to `path` if that is not there, readable for
// its owner alone. kPermission: others may read the file, or it is somebody else's.
Result<Tokens> LoadTokens(const std::string& path);

struct Caller {
  Role role = Role::kViewer;
  std::string actor;  // for the audit log: role and address
};

// Who may come, by what they send.
class Access {
 public:
  // `hosts` are the names, with or without a port, by which the server is meant.
  Access(Tokens tokens, const std::vector<std::string>& hosts, int port, bool tls);

  // Whether the request is meant for this server and, unless it is a read, comes from its own page
  // or from a program with a token. Browsers let any page send requests here; what they cannot do
  // is lie about where those come from.
  std::optional<WebResponse> RefuseOrigin(const WebRequest& request) const;

  // Who it is; none: nobody that we know.
  std::optional<Caller> Identify(const WebRequest& request) const;

  // The cookie for whoever knows a token; none: it is no token.
  std::optional<std::string> Login(std::string_view token) const;
  std::string Logout() const;

 private:
  std::optional<Role> RoleOf(std::string_view token, bool is_cookie) const;
  std::string Attributes() const;

  const Tokens tokens_;
  const bool tls_;
  std::vector<std::string> hosts_;    // as in Host
  std::vector<std::string> origins_;  // as in Origin
  std::string operator_cookie_;
  std::string viewer_cookie_;
};

}  // namespace muster::serve
