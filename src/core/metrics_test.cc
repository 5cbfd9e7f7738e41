#include "core/metrics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace muster {
namespace {

bool HasLine(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, DigestHasQuantilesOfAHistogram) {
  Metrics metrics;
  const Metrics::Labels labels{{"run", "r"}};
  auto seconds = metrics.GetHistogram("write_seconds", "Of a batch.", {0.01, 0.1, 1}, labels);
  EXPECT_FALSE(metrics.DigestOf("write_seconds", labels));
  for (int i = 0; i < 98; ++i) seconds.Observe(0.05);
  seconds.Observe(0.5);
  seconds.Observe(5);
  EXPECT_FALSE(metrics.DigestOf("write_seconds", {{"run", "other"}}));
  const auto digest = metrics.DigestOf("write_seconds", labels);
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->count, 100);
  EXPECT_NEAR(digest->mean, 0.104, 1e-9);
  EXPECT_GT(digest->p50, 0.01);
  EXPECT_LE(digest->p50, 0.1);
  EXPECT_NEAR(digest->p99, 1, 1e-9);
}

TEST(Metrics, TextIsTheExpositionFormat) {
  Metrics metrics;
  metrics.GetCounter("claims_total", "Claims made.", {{"queue", "a\"b"}}).Add(2);
  metrics.GetGauge("workers", "Workers alive.").Set(3);
  auto latency = metrics.GetHistogram("latency_seconds", "Of a claim.", {0.1, 1});
  latency.Observe(0.05);
  latency.Observe(0.5);
  std::string text = metrics.Text();
  for (std::string line :
       {"# HELP claims_total Claims made.", "# TYPE claims_total counter",
        "claims_total{queue=\"a\\\"b\"} 2", "# TYPE workers gauge", "workers 3",
        "# TYPE latency_seconds histogram", "latency_seconds_count 2",
        "latency_seconds_bucket{le=\"0.1\"} 1", "latency_seconds_bucket{le=\"+Inf\"} 2"}) {
    EXPECT_TRUE(HasLine(text, line)) << line << "\nin\n" << text;
  }
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameMetric) {
  Metrics metrics;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) metrics.GetCounter("n_total", "N.", {{"a", "b"}}).Add();
    });
  }
  threads.clear();
  EXPECT_TRUE(HasLine(metrics.Text(), "n_total{a=\"b\"} 4000")) << metrics.Text();
}

TEST(Metrics, TwoRegistriesShareNothing) {
  Metrics one;
  Metrics two;
  one.GetCounter("n_total", "N.").Add();
  EXPECT_EQ(two.Text(), "");
}

TEST(MetricsDeathTest, OneNameForTwoTypesIsABug) {
  Metrics metrics;
  metrics.GetCounter("n", "N.").Add();
  EXPECT_DEATH(metrics.GetGauge("n", "N.").Set(1), "bug: metric n");
}

}  // namespace
}  // namespace muster
