#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace muster {

// Metrics of a running process, for Prometheus to scrape. Handles are cheap to copy, thread-safe,
// and valid as long as the Metrics lives.
//
// Names and labels come from the code, so an invalid one, or one name with two types, is a bug and
// ends the process with a message.
class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;

  class Counter {
   public:
    void Add(double amount = 1) const;

   private:
    friend class Metrics;
    explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
    prometheus::Counter* counter_;
  };

  class Gauge {
   public:
    void Set(double value) const;
    void Add(double amount) const;

   private:
    friend class Metrics;
    explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
    prometheus::Gauge* gauge_;
  };

  class Histogram {
   public:
    void Observe(double value) const;

   private:
    friend class Metrics;
    explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
    prometheus::Histogram* histogram_;
  };

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same name and labels give the same metric.
  Counter GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge GetGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds` are the buckets' upper bounds, ascending; the last bucket is unbounded.
  Histogram GetHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds, const Labels& labels = {});

  // A histogram's contents so far; quantiles are as exact as its buckets. None: no such histogram,
  // or no observations.
  struct Digest {
    int64_t count = 0;
    double mean = 0;
    double p50 = 0;
    double p99 = 0;
  };
  std::optional<Digest> DigestOf(const std::string& name, const Labels& labels) const;

  // Everything, in Prometheus's text exposition format.
  std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
