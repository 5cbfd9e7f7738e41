#include "serve/routes.h"

#include <gtest/gtest.h>

#include <set>

#include "serve/api_document.h"

namespace muster::serve {
namespace {

TEST(RoutesTest, HeadUsesTheRouteOfGet) {
  const RouteMatch match = FindRoute("HEAD", "/api/v1/stores/0/work/a%2Fb");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->method, Method::kGet);
  EXPECT_EQ(match.names, (Names{"0", "a/b"}));
}

TEST(RoutesTest, WrongMethodListsTheAllowedOnes) {
  EXPECT_EQ(FindRoute("POST", "/api/v1/overview").route, nullptr);
  EXPECT_EQ(FindRoute("POST", "/api/v1/overview").allowed, "GET, HEAD");
  EXPECT_EQ(FindRoute("GET", "/api/v1/stores/0/work/r/retry").allowed, "POST");
  EXPECT_EQ(FindRoute("GET", "/api/v1/nothing").allowed, "");
}

TEST(RoutesTest, EachPathAndMethodHasOneRoute) {
  std::set<std::pair<Method, std::string>> seen;
  for (const Route& route : Routes()) {
    EXPECT_TRUE(seen.emplace(route.method, route.pattern).second) << route.pattern;
  }
}

// Not only of actions: a role that a route names is enforced.
TEST(RoutesTest, ARouteIsOpenToItsRoleAndThoseAbove) {
  Route route = Routes().front();
  route.role = Role::kOperator;
  EXPECT_FALSE(route.IsOpenTo(Role::kViewer));
  EXPECT_TRUE(route.IsOpenTo(Role::kOperator));
  route.role = Role::kViewer;
  EXPECT_TRUE(route.IsOpenTo(Role::kViewer));
  EXPECT_TRUE(route.IsOpenTo(Role::kOperator));
  route.role = std::nullopt;
  EXPECT_TRUE(route.IsOpenTo(Role::kViewer));
}

TEST(RoutesTest, ChangesArePostsForOperators) {
  for (const Route& route : Routes()) {
    if (!route.IsAction()) continue;
    EXPECT_EQ(route.method, Method::kPost) << route.pattern;
    EXPECT_EQ(route.role, Role::kOperator) << route.pattern;
    EXPECT_EQ(route.fields.front().name, "preview") << route.pattern;
  }
}

TEST(RoutesTest, DocumentDefinesAllReferences) {
  const std::string& document = ApiDocument();
  constexpr std::string_view kReference = "#/components/";
  for (size_t at = document.find(kReference); at != document.npos;
       at = document.find(kReference, at + 1)) {
    const std::string path = document.substr(at, document.find('"', at) - at);
    const std::string name = path.substr(path.rfind('/') + 1);
    EXPECT_NE(document.find("\n    " + name + ":"), document.npos) << path;
  }
}

TEST(RoutesTest, OpenRoutesRevealNothing) {
  std::set<std::string> open;
  for (const Route& route : Routes()) {
    if (!route.role && !route.summary.empty()) open.insert(route.pattern);
  }
  EXPECT_EQ(open, (std::set<std::string>{"/healthz", "/login", "/readyz"}));
}

}  // namespace
}  // namespace muster::serve
