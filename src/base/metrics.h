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

// Numbers about a running process, for Prometheus to collect. A Metrics is passed to whoever
// counts; the handles it gives are cheap to copy, safe to use from any thread, and valid as long as
// it lives.
//
// Names and labels come from the code, so a bad one, or one name for two types, is a bug and ends
// the process with a message.
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

  // Asking again with the same name and labels gives the same metric.
  Counter GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge GetGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds` are the upper bounds of the buckets, ascending; the last bucket has none.
  Histogram GetHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds, const Labels& labels = {});

  // What a histogram has seen so far; the quantiles are as exact as its buckets. None: there is no
  // such histogram, or it has seen nothing.
  struct Digest {
    int64_t count = 0;
    double mean = 0;
    double p50 = 0;
    double p99 = 0;
  };
  std::optional<Digest> DigestOf(const std::string& name, const Labels& labels) const;

  // Everything, in Prometheus' text exposition format.
  std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
