#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"
#include "muster/result.h"
#include "serve/actions.h"
#include "serve/fields.h"
#include "serve/sessions.h"
#include "serve/views.h"
#include "serve/web_message.h"

namespace muster::serve {

class Api;
struct ApiCall;

// An answer that a route gives beside errors.
struct Reply {
  int status = 200;
  std::string description;
  std::string content = {};  // a schema's name, or a media type; empty: no body
};

using ReadView = Result<Json> (Views::*)(const Names&);     // can be followed live
using Act = Result<Json> (Actions::*)(const ActionCall&);   // audited; viewers may preview it
using Answer = WebResponse (Api::*)(const ApiCall&) const;  // anything else

enum class Method { kGet, kPost };
inline constexpr EnumNames<Method, 2> kMethods{{{{Method::kGet, "GET"}, {Method::kPost, "POST"}}}};

// One endpoint. The route table is the single source: refusals, the API document and the page's
// types are derived from it.
struct Route {
  Method method;               // a GET answers HEAD as well
  std::string pattern;         // "/api/v1/stores/{store}/work/{run}"
  std::optional<Role> role;    // the least that is needed; none: open to everyone
  std::string summary;         // empty: a file of the page, which is not part of the API
  std::vector<Reply> replies;  // the first is that of success
  std::vector<Field> fields;   // of a GET's query, or a POST's body
  std::variant<ReadView, Act, Answer> handler;

  bool IsLive() const { return std::holds_alternative<ReadView>(handler); }
  bool IsOpenTo(Role caller) const { return !role || caller >= *role; }
  bool IsAction() const { return std::holds_alternative<Act>(handler); }
};

const std::vector<Route>& Routes();

struct RouteMatch {
  const Route* route = nullptr;  // null: no such path, or not by this method
  Names names = {};
  std::string allowed = {};  // methods, as in the Allow header; empty: no such path
};
RouteMatch FindRoute(std::string_view method, std::string_view path);

}  // namespace muster::serve
