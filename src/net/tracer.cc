#include "net/tracer.h"

#include <utility>

#include "core/guard.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/secrets.h"
#include "core/sha256.h"

namespace muster::net {
namespace {

constexpr size_t kMostWaiting = 4'096;
constexpr size_t kMostAtOnce = 512;
constexpr std::chrono::seconds kSendEvery{2};
constexpr std::chrono::milliseconds kPatience{5'000};
constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;
constexpr int kFailed = 2;  // STATUS_CODE_ERROR

std::string TraceId(const std::string& text) { return Sha256Hex(text).substr(0, kTraceIdDigits); }

std::string SpanId(const std::string& trace, const std::string& text) {
  return Sha256Hex(trace + '\n' + text).substr(0, kSpanIdDigits);
}

Json Attribute(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", Redact(value)}}}};
}

std::string Nanoseconds(WallTime time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

Json SpanJson(const TraceSpan& span) {
  Json json{{"traceId", TraceId(span.trace)},
            {"spanId", SpanId(span.trace, span.itself)},
            {"name", span.name},
            {"kind", 1},
            {"startTimeUnixNano", Nanoseconds(span.start)},
            {"endTimeUnixNano", Nanoseconds(span.end)},
            {"attributes", Json::array()}};
  if (!span.parent.empty()) json["parentSpanId"] = SpanId(span.trace, span.parent);
  for (const auto& [key, value] : span.attributes) {
    if (!value.empty()) json["attributes"].push_back(Attribute(key, value));
  }
  if (!span.error.empty()) json["status"] = {{"code", kFailed}, {"message", Redact(span.error)}};
  return json;
}

}  // namespace

Json OtlpRequest(const std::vector<TraceSpan>& spans, const std::string& service) {
  Json list = Json::array();
  for (const TraceSpan& span : spans) list.push_back(SpanJson(span));
  Json scope{{"scope", {{"name", "muster"}}}, {"spans", std::move(list)}};
  Json resource{{"resource", {{"attributes", {Attribute("service.name", service)}}}},
                {"scopeSpans", Json::array({std::move(scope)})}};
  return {{"resourceSpans", Json::array({std::move(resource)})}};
}

Tracer::Tracer(std::string endpoint, std::string service)
    : endpoint_(std::move(endpoint)), service_(std::move(service)) {
  if (!on()) return;
  thread_ = std::jthread(
      [this](const std::stop_token& stop) { LogThrown("traces", [&] { Run(stop); }); });
}

Tracer::~Tracer() = default;

void Tracer::Add(TraceSpan span) {
  if (!on()) return;
  const MutexLock lock(mutex_);
  if (waiting_.size() < kMostWaiting) {
    waiting_.push_back(std::move(span));
  } else if (!std::exchange(has_warned_, true)) {
    Log(Level::kWarning, "the collector is too slow: traces are incomplete",
        {{"endpoint", endpoint_}});
  }
  if (waiting_.size() >= kMostAtOnce) news_.notify_one();
}

void Tracer::Run(const std::stop_token& stop) {
  while (true) {
    std::vector<TraceSpan> spans;
    {
      MutexLock lock(mutex_);
      news_.wait_for(lock, stop, kSendEvery,
                     [&]() REQUIRES(mutex_) { return waiting_.size() >= kMostAtOnce; });
      spans = std::exchange(waiting_, {});
    }
    if (!spans.empty()) Send(spans);
    if (stop.stop_requested()) return;
  }
}

void Tracer::Send(const std::vector<TraceSpan>& spans) {
  const auto answer = client_.Send({.method = "POST",
                                    .url = endpoint_ + "/v1/traces",
                                    .headers = {{"Content-Type", "application/json"}},
                                    .body = ToJsonText(OtlpRequest(spans, service_)),
                                    .timeout = kPatience});
  if (answer && answer->status < 300) return;
  const MutexLock lock(mutex_);
  if (std::exchange(has_warned_, true)) return;
  const std::string why =
      answer ? "HTTP status " + std::to_string(answer->status) : answer.error().ToString();
  Log(Level::kWarning, "the collector rejects traces; they are dropped",
      {{"endpoint", endpoint_}, {"why", why}});
}

}  // namespace muster::net
