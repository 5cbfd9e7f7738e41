#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

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

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace muster
