#include "core/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace muster {
namespace {

template <class Make>
auto* OrDie(const std::string& name, Make make) {
  try {
    return &make();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster: bug: metric %s: %s\n", name.c_str(), error.what());
    std::abort();
  }
}

// Interpolates linearly within the bucket, as Prometheus does.
double Quantile(const prometheus::ClientMetric::Histogram& histogram, double part) {
  const double rank = part * static_cast<double>(histogram.sample_count);
  double below = 0;
  double lower = 0;
  for (const auto& bucket : histogram.bucket) {
    const auto count = static_cast<double>(bucket.cumulative_count);
    if (count >= rank) {
      if (std::isinf(bucket.upper_bound)) return lower;
      return lower + (bucket.upper_bound - lower) * (rank - below) / std::max(1.0, count - below);
    }
    below = count;
    lower = bucket.upper_bound;
  }
  return lower;
}

bool HasLabels(const prometheus::ClientMetric& metric, const Metrics::Labels& labels) {
  Metrics::Labels own;
  for (const auto& label : metric.label) own[label.name] = label.value;
  return own == labels;
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::Counter::Add(double amount) const { counter_->Increment(amount); }
void Metrics::Gauge::Set(double value) const { gauge_->Set(value); }
void Metrics::Gauge::Add(double amount) const { gauge_->Increment(amount); }
void Metrics::Histogram::Observe(double value) const { histogram_->Observe(value); }

Metrics::Counter Metrics::GetCounter(const std::string& name, const std::string& help,
                                     const Labels& labels) {
  return Counter(OrDie(name, [&]() -> auto& {
    return prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry).Add(labels);
  }));
}

Metrics::Gauge Metrics::GetGauge(const std::string& name, const std::string& help,
                                 const Labels& labels) {
  return Gauge(OrDie(name, [&]() -> auto& {
    return prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry).Add(labels);
  }));
}

Metrics::Histogram Metrics::GetHistogram(const std::string& name, const std::string& help,
                                         const std::vector<double>& bounds, const Labels& labels) {
  return Histogram(OrDie(name, [&]() -> auto& {
    return prometheus::BuildHistogram()
        .Name(name)
        .Help(help)
        .Register(impl_->registry)
        .Add(labels, prometheus::Histogram::BucketBoundaries(bounds));
  }));
}

std::optional<Metrics::Digest> Metrics::DigestOf(const std::string& name,
                                                 const Labels& labels) const {
  for (const prometheus::MetricFamily& family : impl_->registry.Collect()) {
    if (family.name != name) continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      const auto& histogram = metric.histogram;
      if (!HasLabels(metric, labels) || histogram.sample_count == 0) continue;
      return Digest{.count = static_cast<int64_t>(histogram.sample_count),
                    .mean = histogram.sample_sum / static_cast<double>(histogram.sample_count),
                    .p50 = Quantile(histogram, 0.5),
                    .p99 = Quantile(histogram, 0.99)};
    }
  }
  return std::nullopt;
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace muster
