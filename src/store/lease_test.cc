#include "muster/store.h"

#include <gtest/gtest.h>

#include "core/virtual_env.h"
#include "store/backends.h"
#include "store/unlucky_store.h"

namespace muster::store {
namespace {

using namespace std::chrono_literals;

class LeaseTest : public ::testing::Test {
 protected:
  using Luck = UnluckyStore::Luck;

  void SetUp() override {
    const Change change =
        Change::Put(Record{.kind = "work", .queue = "q", .key = "a", .body = "0"}, Due::AtOnce());
    ASSERT_TRUE(truth_->Write({&change, 1}));
  }

  Result<std::vector<Lease>> Claim(const std::string& owner) {
    return Lease::Claim(store_, {.kind = "work", .queue = "q", .owner = owner, .terms = terms_},
                        env_, {});
  }
  Lease ClaimOne(const std::string& owner) { return std::move(Claim(owner).value().at(0)); }
  Record Stored() { return truth_->Get("work", "a").value().value(); }

  VirtualEnv env_;
  std::unique_ptr<Store> truth_ = NewMemoryStore(env_);
  UnluckyStore store_{*truth_};
  LeaseTerms terms_{.lease = 10s, .max_lease = 60s};
};

TEST_F(LeaseTest, CheckpointStoresProgressAndRenews) {
  Lease lease = ClaimOne("me");
  env_.Pass(8s);
  ASSERT_TRUE(lease.Renew("17"));
  EXPECT_EQ(Stored().body, "17");
  EXPECT_EQ(Stored().due, env_.WallNow() + 10s);
  EXPECT_EQ(Stored().attempt, 0);
  EXPECT_EQ(lease.deadline(), env_.MonoNow() + 10s);
}

TEST_F(LeaseTest, CompletedItemIsNeverDueAgain) {
  ASSERT_TRUE(ClaimOne("me").End("20"));
  EXPECT_EQ(Stored().body, "20");
  EXPECT_FALSE(Stored().due);
  env_.Pass(1h);
  EXPECT_TRUE(Claim("other")->empty());
}

TEST_F(LeaseTest, ReleasedItemIsDueAtOnceAndTheAttemptDoesNotCount) {
  ASSERT_TRUE(ClaimOne("me").Release());
  EXPECT_EQ(Stored().attempt, 0);
  EXPECT_EQ(Stored().owner, "");
  EXPECT_EQ(ClaimOne("other").epoch(), 2);
}

TEST_F(LeaseTest, FailedItemIsDueAfterTheDelayAndTheAttemptCounts) {
  ASSERT_TRUE(ClaimOne("me").GiveBack("\"sink is on fire\"", 5s, Lease::Attempts::kOneMore));
  EXPECT_EQ(Stored().body, "\"sink is on fire\"");
  EXPECT_EQ(Stored().owner, "");
  EXPECT_TRUE(Claim("other")->empty());
  env_.Pass(5s);
  EXPECT_EQ(ClaimOne("other").attempt(), 2);
}

TEST_F(LeaseTest, AttemptsAreReset) {
  ASSERT_TRUE(ClaimOne("me").GiveBack("7", 5s, Lease::Attempts::kOneMore));
  env_.Pass(5s);
  ASSERT_TRUE(ClaimOne("me").GiveBack("7", 5s, Lease::Attempts::kAnew));
  env_.Pass(5s);
  EXPECT_EQ(ClaimOne("other").attempt(), 1);
}

TEST_F(LeaseTest, ParkedItemHasNoOwnerAndIsNeverDue) {
  ASSERT_TRUE(ClaimOne("me").Park("\"poison\""));
  EXPECT_EQ(Stored().body, "\"poison\"");
  EXPECT_EQ(Stored().owner, "");
  EXPECT_FALSE(Stored().due);
}

TEST_F(LeaseTest, RemovalWithALostResponseCounts) {
  Lease lease = ClaimOne("me");
  store_.next = {Luck::kLostReply};
  EXPECT_TRUE(lease.Remove());
  EXPECT_FALSE(truth_->Get("work", "a").value());
  EXPECT_TRUE(lease.Expired());
}

TEST_F(LeaseTest, LostRemovalIsRetried) {
  Lease lease = ClaimOne("me");
  store_.next = {Luck::kLostRequest, Luck::kDown, Luck::kLostRequest, Luck::kGood};
  EXPECT_TRUE(lease.Remove());
  EXPECT_FALSE(truth_->Get("work", "a").value());
}

TEST_F(LeaseTest, RecordMadeDueEarlierIsRemoved) {
  Lease lease = ClaimOne("me");
  const Change due = Change::Put(Stored(), Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&due, 1}));
  EXPECT_TRUE(lease.Remove());
  EXPECT_FALSE(truth_->Get("work", "a").value());
}

TEST_F(LeaseTest, RemovalAfterReacquireFailsWithLeaseLost) {
  Lease before = ClaimOne("me");
  const Change due = Change::Put(Stored(), Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&due, 1}));
  Lease after = ClaimOne("other");
  EXPECT_EQ(before.Remove().error().code, Code::kLeaseLost);
  EXPECT_TRUE(after.StillOurs().value());
}

TEST_F(LeaseTest, HolderCanCheckThatItStillHoldsTheRecord) {
  Lease lease = ClaimOne("me");
  EXPECT_TRUE(lease.StillOurs().value());
  env_.Pass(10s);
  Lease other = ClaimOne("other");
  EXPECT_FALSE(lease.StillOurs().value());
  EXPECT_TRUE(other.StillOurs().value());
}

TEST_F(LeaseTest, RenewAfterReacquireFailsWithLeaseLost) {
  Lease late = ClaimOne("me");
  env_.Pass(10s);
  Lease current = ClaimOne("other");
  EXPECT_EQ(late.Renew("1").error().code, Code::kLeaseLost);
  EXPECT_EQ(late.End("1").error().code, Code::kLeaseLost);
  EXPECT_EQ(late.Release().error().code, Code::kLeaseLost);
  EXPECT_EQ(NameOfOwner(Stored().owner), "other");
  EXPECT_TRUE(current.End("20"));
}

TEST_F(LeaseTest, OwnersNameTheirClaimer) {
  EXPECT_EQ(OwnerName("host-7", "0123456789abcdef"), "host-7#01234567");
  EXPECT_EQ(NameOfOwner("host-7#01234567"), "host-7");
  EXPECT_EQ(NameOfOwner("of-an-earlier-version"), "of-an-earlier-version");
  EXPECT_EQ(NameOfOwner(""), "");
}

// Both claims have the same name, epoch and body.
TEST_F(LeaseTest, AnEpochThatARestoredStoreGrantsAgainIsAnotherLease) {
  const Record backup = Stored();
  Lease before = ClaimOne("me");
  const Change remove = Change::Delete(Stored());
  ASSERT_TRUE(truth_->Write({&remove, 1}));
  Record restored = backup;
  restored.version = 0;
  const Change restore = Change::Put(restored, Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&restore, 1}));
  Lease after = ClaimOne("me");
  ASSERT_EQ(after.epoch(), before.epoch());
  EXPECT_FALSE(before.StillOurs().value());
  EXPECT_EQ(before.Renew("5").error().code, Code::kLeaseLost);
  EXPECT_TRUE(after.StillOurs().value());
  EXPECT_TRUE(after.Renew("6"));
}

TEST_F(LeaseTest, RestartedWorkerHoldsNoEarlierLeases) {
  Lease before = ClaimOne("me");
  env_.Pass(9s);
  // By the store's clock the lease has ended; the former life has not noticed yet.
  Record stored = Stored();
  const Change expire = Change::Put(stored, Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&expire, 1}));
  Lease after = ClaimOne("me");
  EXPECT_EQ(before.Renew("1").error().code, Code::kLeaseLost);
  EXPECT_TRUE(after.Renew("2"));
}

TEST_F(LeaseTest, ExpiredHolderMakesNoCalls) {
  Lease lease = ClaimOne("me");
  env_.Pass(10s);
  const int writes = store_.writes;
  EXPECT_EQ(lease.Renew("1").error().code, Code::kLeaseLost);
  EXPECT_EQ(store_.writes, writes);
}

TEST_F(LeaseTest, CompletionWithALostResponseCounts) {
  Lease lease = ClaimOne("me");
  store_.next = {Luck::kLostReply};
  EXPECT_TRUE(lease.End("20"));
  EXPECT_EQ(Stored().body, "20");
}

TEST_F(LeaseTest, LostCompletionIsRetried) {
  Lease lease = ClaimOne("me");
  store_.next = {Luck::kLostRequest, Luck::kDown, Luck::kLostRequest, Luck::kGood};
  EXPECT_TRUE(lease.End("20"));
  EXPECT_EQ(Stored().body, "20");
}

TEST_F(LeaseTest, UnchangedProgressIsNotMistakenForARenewal) {
  Lease lease = ClaimOne("me");
  ASSERT_TRUE(lease.Renew("5"));
  env_.Pass(8s);
  store_.next = {Luck::kLostRequest};
  ASSERT_TRUE(lease.Renew("5"));
  EXPECT_GE(*Stored().due, env_.WallNow() + 9s);
}

TEST_F(LeaseTest, OutcomeNotKnownInTimeIsReportedAsUnknown) {
  Lease lease = ClaimOne("me");
  store_.next = {Luck::kLostReply};
  store_.down = true;
  EXPECT_EQ(lease.End("20").error().code, Code::kUnknownOutcome);
  EXPECT_LT(env_.MonoNow(), MonoTime{1h + 10s});
  EXPECT_TRUE(lease.Expired());
}

TEST_F(LeaseTest, UnavailableStoreIsRetriedUntilTheLeaseEnds) {
  Lease lease = ClaimOne("me");
  store_.down = true;
  EXPECT_EQ(lease.Renew("1").error().code, Code::kUnavailable);
  EXPECT_LT(env_.MonoNow(), MonoTime{1h + 10s});
  EXPECT_GT(store_.writes, 3);
}

TEST_F(LeaseTest, FullDiskIsRetried) {
  Lease lease = ClaimOne("me");
  store_.next = {Luck::kFull, Luck::kFull};
  EXPECT_TRUE(lease.Renew("1"));
}

TEST_F(LeaseTest, ClaimWithALostResponseIsNotMadeTwice) {
  store_.next = {Luck::kLostReply};
  Lease lease = ClaimOne("me");
  EXPECT_EQ(lease.epoch(), 1);
  EXPECT_EQ(lease.attempt(), 1);
  // Counted from before the request that was granted.
  EXPECT_EQ(lease.deadline(), MonoTime{1h + 10s});
}

TEST_F(LeaseTest, ClaimGivesUpIfTheStoreStaysUnavailable) {
  store_.down = true;
  EXPECT_EQ(Claim("me").error().code, Code::kUnavailable);
}

TEST_F(LeaseTest, ClaimCanNameItsRecord) {
  const Change change =
      Change::Put(Record{.kind = "work", .queue = "q", .key = "b", .body = "0"}, Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&change, 1}));
  const auto leases = Lease::Claim(
      store_, {.kind = "work", .queue = "q", .key = "b", .owner = "me", .limit = 5}, env_, {});
  ASSERT_EQ(leases->size(), 1U);
  EXPECT_EQ(leases->front().key(), "b");
}

TEST_F(LeaseTest, RecordMadeDueEarlierIsStillHeld) {
  Lease lease = ClaimOne("me");
  const Change wake = Change::Put(Stored(), Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&wake, 1}));
  ASSERT_TRUE(lease.Renew("1"));
  EXPECT_EQ(Stored().body, "1");
  EXPECT_EQ(Stored().due, env_.WallNow() + 10s);
}

TEST_F(LeaseTest, UnchangedProgressIsRenewedAfterTheRecordWasMadeDue) {
  Lease lease = ClaimOne("me");
  const Change wake = Change::Put(Stored(), Due::AtOnce());
  ASSERT_TRUE(truth_->Write({&wake, 1}));
  ASSERT_TRUE(lease.Renew(lease.body()));
  EXPECT_EQ(Stored().due, env_.WallNow() + 10s);
}

TEST_F(LeaseTest, RecordWithABodyChangedByOthersIsLost) {
  Lease lease = ClaimOne("me");
  Record stopped = Stored();
  stopped.body = "\"stopped\"";
  const Change stop = Change::Put(stopped, Due::Never());
  ASSERT_TRUE(truth_->Write({&stop, 1}));
  EXPECT_EQ(lease.Renew("1").error().code, Code::kLeaseLost);
  EXPECT_EQ(Stored().body, "\"stopped\"");
  ASSERT_TRUE(lease.lost_to());
  EXPECT_EQ(lease.lost_to()->body, "\"stopped\"");
}

TEST_F(LeaseTest, CommitThatKeepsTheRecordExtendsTheDeadline) {
  Lease lease = ClaimOne("me");
  Record next = lease.record();
  next.body = "1";
  ASSERT_TRUE(lease.Commit(next, Due::After(3s)));
  EXPECT_EQ(lease.deadline(), env_.MonoNow() + 3s);
  EXPECT_EQ(lease.record().version, Stored().version);
}

TEST_F(LeaseTest, CommitOfSeveralRecordsIsTakenOver) {
  Lease lease = ClaimOne("me");
  Record next = lease.record();
  next.body = "1";
  const Change change = Change::Put(next, Due::After(20s));
  const MonoTime asked = env_.MonoNow();
  const auto written = truth_->Write({&change, 1});
  lease.Committed(next, written->front().version, change.due, asked);
  EXPECT_EQ(lease.deadline(), asked + 20s);
  EXPECT_TRUE(lease.End("2"));
}

TEST_F(LeaseTest, CreatedRecordIsHeldFromTheStart) {
  const Record record{
      .kind = "member", .queue = "q", .key = "m", .owner = "me", .body = "\"here\""};
  store_.next = {Luck::kDown, Luck::kLostReply};
  auto lease = Lease::Create(store_, record, 10s, env_);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->StillOurs().value());
  EXPECT_TRUE(lease->Renew("\"still\""));
  EXPECT_EQ(truth_->Get("member", "m").value().value().owner, "me");
}

TEST_F(LeaseTest, ExistingRecordIsNotCreatedAgain) {
  Record record{.kind = "member", .queue = "q", .key = "m", .owner = "other"};
  ASSERT_TRUE(Lease::Create(store_, record, 10s, env_));
  record.owner = "me";
  EXPECT_EQ(Lease::Create(store_, record, 10s, env_).error().code, Code::kLeaseLost);
}

}  // namespace
}  // namespace muster::store
