#include "store/server_clock.h"

#include <gtest/gtest.h>

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr MonoTime kStart{1'000'000s};
constexpr WallTime kServerStart{1'800'000'000'000ms};

// A server whose clock was at kServerStart, plus `skew`, when ours was at kStart.
struct Server {
  milliseconds skew{0};
  milliseconds tick{1};

  WallTime TimeAt(MonoTime moment) const {
    return kServerStart + skew + std::chrono::floor<milliseconds>(moment - kStart);
  }

  // One request and its response; the server reads its clock `until` after the request.
  void Ask(ServerClock& clock, MonoTime asked, milliseconds until, milliseconds round_trip) const {
    const WallTime exact = TimeAt(asked + until);
    const WallTime shown = exact - exact.time_since_epoch() % tick;
    clock.Observe(asked, asked + round_trip, shown, tick);
  }
};

TEST(ServerClock, UnknownBeforeTheFirstResponse) {
  ServerClock clock;
  EXPECT_TRUE(clock.IsStale(kStart));
  EXPECT_EQ(clock.Read(kStart).error().code, Code::kUnavailable);
}

TEST(ServerClock, ServersTimeIsWithinTheErrorAnywhereInTheRoundTrip) {
  for (const milliseconds tick : {1ms, 1000ms}) {
    for (const milliseconds until : {0ms, 1ms, 40ms, 79ms, 80ms}) {
      for (const milliseconds skew : {0ms, 1ms, 499ms, 500ms, 999ms}) {
        const Server server{.skew = skew, .tick = tick};
        ServerClock clock;
        server.Ask(clock, kStart, until, 80ms);
        const auto reading = clock.Read(kStart + 80ms).value();
        const WallTime truth = server.TimeAt(kStart + 80ms);
        EXPECT_LE(reading.now - reading.error, truth);
        EXPECT_GE(reading.now + reading.error, truth);
        EXPECT_LE(reading.error, (tick + 80ms) / 2 + 2ms);
      }
    }
  }
}

TEST(ServerClock, ManyResponsesNarrowTheErrorBelowATick) {
  const Server server{.skew = 123ms, .tick = 1000ms};
  ServerClock clock;
  MonoTime now = kStart;
  for (int i = 0; i < 200; ++i, now += 37ms) server.Ask(clock, now, 2ms, 4ms);
  const auto reading = clock.Read(now).value();
  EXPECT_LT(reading.error, 40ms);
  EXPECT_LE(reading.now - reading.error, server.TimeAt(now));
  EXPECT_GE(reading.now + reading.error, server.TimeAt(now));
}

TEST(ServerClock, NeverGoesBackWhileTheErrorShrinks) {
  const Server server{.tick = 1000ms};
  ServerClock clock;
  WallTime last{};
  for (MonoTime now = kStart; now < kStart + 3s; now += 13ms) {
    server.Ask(clock, now, 5ms, 11ms);
    const WallTime next = clock.Read(now + 11ms).value().now;
    EXPECT_GE(next, last);
    last = next;
  }
}

TEST(ServerClock, ErrorGrowsUntilTheNextResponse) {
  ServerClock clock;
  Server{}.Ask(clock, kStart, 1ms, 2ms);
  EXPECT_FALSE(clock.IsStale(kStart + 50s));
  EXPECT_TRUE(clock.IsStale(kStart + 61s));
  EXPECT_GE(clock.Read(kStart + 100s).value().error, 50ms);
  EXPECT_EQ(clock.Read(kStart + 24h).error().code, Code::kUnavailable);
  Server{}.Ask(clock, kStart + 24h, 1ms, 2ms);
  EXPECT_LE(clock.Read(kStart + 24h).value().error, 5ms);
}

TEST(ServerClock, SlowResponseIsIgnored) {
  ServerClock clock;
  Server{}.Ask(clock, kStart, 1ms, 13s);
  EXPECT_EQ(clock.Read(kStart + 13s).error().code, Code::kUnavailable);
}

TEST(ServerClock, SlowServerGivesALargerError) {
  ServerClock clock;
  Server{}.Ask(clock, kStart, 3s, 6s);
  const auto reading = clock.Read(kStart + 6s);
  ASSERT_TRUE(reading) << reading.error().ToString();
  EXPECT_GE(reading->error, 3s);
  EXPECT_LE(reading->error, 3100ms);
}

TEST(ServerClock, FollowsAServerWhoseClockWasSet) {
  for (const auto jump : {1h, -1h}) {
    ServerClock clock;
    Server{}.Ask(clock, kStart, 1ms, 2ms);
    (void)clock.Read(kStart + 2ms);
    const Server changed{.skew = jump};
    changed.Ask(clock, kStart + 1s, 1ms, 2ms);
    const auto reading = clock.Read(kStart + 1s).value();
    EXPECT_LE(std::chrono::abs(reading.now - changed.TimeAt(kStart + 1s)), reading.error);
    EXPECT_LE(reading.error, 5ms);
  }
}

TEST(ServerClock, DisagreementOfServersBehindOneAddressIsPartOfTheError) {
  const Server ahead{.skew = 300ms};
  const Server behind{};
  ServerClock clock;
  for (int i = 0; i < 4; ++i) {
    ahead.Ask(clock, kStart + i * 10s, 1ms, 2ms);
    behind.Ask(clock, kStart + i * 10s + 5s, 1ms, 2ms);
  }
  const auto reading = clock.Read(kStart + 36s).value();
  for (const Server& server : {ahead, behind}) {
    EXPECT_LE(std::chrono::abs(reading.now - server.TimeAt(kStart + 36s)), reading.error);
  }
}

// Whatever the errors of two workers, a lease is taken over neither before it ends nor long after.
TEST(ServerClock, NoLeaseIsTakenBeforeItEndsByTheServersClock) {
  const Server server{.skew = 321ms, .tick = 1000ms};
  for (const milliseconds holders_luck : {1ms, 400ms, 799ms}) {
    for (const milliseconds thiefs_luck : {1ms, 400ms, 799ms}) {
      ServerClock holder, thief;
      server.Ask(holder, kStart, holders_luck, 800ms);
      const MonoTime claimed = kStart + 1s;
      const auto times = holder.Read(claimed).value().After(30s);
      server.Ask(thief, kStart + 25s, thiefs_luck, 800ms);
      MonoTime taken = claimed;
      while (thief.Read(taken).value().Horizon() < times.ready) taken += 1ms;
      EXPECT_GE(taken - claimed, 30s);
      EXPECT_LE(taken - claimed, 30s + 4 * ServerClock::kMaxError);
    }
  }
}

TEST(ServerClock, DueAtOnceIsReadyForAll) {
  const Server server{.skew = 777ms, .tick = 1000ms};
  for (const milliseconds writers_luck : {0ms, 800ms}) {
    for (const milliseconds readers_luck : {0ms, 800ms}) {
      ServerClock writer, reader;
      server.Ask(writer, kStart, writers_luck, 800ms);
      server.Ask(reader, kStart, readers_luck, 800ms);
      const auto times = writer.Read(kStart + 1s).value().At(Due::AtOnce());
      EXPECT_LE(times.ready, reader.Read(kStart + 1s).value().Horizon());
    }
  }
}

}  // namespace
}  // namespace muster::store
