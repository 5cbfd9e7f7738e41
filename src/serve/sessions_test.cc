#include "serve/sessions.h"

#include <gtest/gtest.h>

#include "core/virtual_env.h"
#include "support/temporary_folder.h"

namespace muster::serve {
namespace {

using std::chrono::hours;

class SessionsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Sessions> Open(int port = 8077) {
    return std::make_unique<Sessions>(tokens_, port, folder_.path() + "/ended", env_);
  }

  const testing::TemporaryFolder folder_;
  const Tokens tokens_{.for_operator = std::string(64, 'a'), .for_viewer = std::string(64, 'b')};
  VirtualEnv env_{WallTime(hours(500'000))};
  std::unique_ptr<Sessions> sessions_ = Open();
};

TEST_F(SessionsTest, CookieIdentifiesTheSession) {
  for (const Role role : {Role::kOperator, Role::kViewer}) {
    const std::string value = sessions_->ValueOf(sessions_->Begin(role));
    const auto found = sessions_->Find(value);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->role, role);
    // Also after a restart, but on no other port.
    EXPECT_TRUE(Open()->Find(value));
    EXPECT_FALSE(Open(8078)->Find(value));
  }
}

TEST_F(SessionsTest, ModifiedCookieIsInvalid) {
  const std::string value = sessions_->ValueOf(sessions_->Begin(Role::kViewer));
  for (size_t i = 0; i < value.size(); ++i) {
    std::string changed = value;
    changed[i] = changed[i] == '7' ? '8' : '7';
    EXPECT_FALSE(sessions_->Find(changed)) << changed;
  }
  for (const char* junk : {"", ".", "..", "a.1.", "a.x.b", "junk"})
    EXPECT_FALSE(sessions_->Find(junk)) << junk;
}

TEST_F(SessionsTest, ExpiresUnlessRenewed) {
  const Session session = sessions_->Begin(Role::kOperator);
  EXPECT_TRUE(sessions_->IsFresh(session));
  env_.Sleep(hours(11), {});
  EXPECT_FALSE(sessions_->IsFresh(session));
  ASSERT_TRUE(sessions_->Find(sessions_->ValueOf(session)));
  const Session renewed = sessions_->Renew(session);
  EXPECT_TRUE(sessions_->IsFresh(renewed));
  env_.Sleep(hours(1), {});
  EXPECT_FALSE(sessions_->Find(sessions_->ValueOf(session)));
  EXPECT_TRUE(sessions_->Find(sessions_->ValueOf(renewed)));
}

TEST_F(SessionsTest, EndedSessionInvalidatesAllItsCookies) {
  const Session session = sessions_->Begin(Role::kOperator);
  const Session other = sessions_->Begin(Role::kOperator);
  env_.Sleep(hours(2), {});
  const Session renewed = sessions_->Renew(session);
  sessions_->End(session);
  env_.Sleep(hours(9), {});
  const auto restarted = Open();
  for (const Sessions* sessions : {sessions_.get(), restarted.get()}) {
    EXPECT_FALSE(sessions->Find(sessions->ValueOf(session)));
    EXPECT_FALSE(sessions->Find(sessions->ValueOf(renewed)));
    EXPECT_FALSE(sessions->IsAlive(renewed));
    EXPECT_TRUE(sessions->Find(sessions->ValueOf(other)));
  }
  // Its id is dropped when its cookies would have expired.
  EXPECT_TRUE(folder_.Has("ended"));
  env_.Sleep(hours(4), {});
  Open();
  EXPECT_FALSE(folder_.Has("ended"));
}

TEST_F(SessionsTest, TornLineHidesNoEndedSession) {
  const Session session = sessions_->Begin(Role::kOperator);
  folder_.Write("ended", "torn");
  sessions_->End(session);
  const auto restarted = Open();
  EXPECT_FALSE(restarted->Find(restarted->ValueOf(session)));
}

}  // namespace
}  // namespace muster::serve
