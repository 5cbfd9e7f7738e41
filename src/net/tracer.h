#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "net/http.h"

namespace muster::net {

// A finished operation with start and end. Spans with the same `trace` text form one trace,
// whichever process sends them; ids are derived from `itself` and `parent`.
struct TraceSpan {
  std::string name;
  std::string trace;
  std::string itself;
  std::string parent = {};  // empty: a root
  WallTime start{};
  WallTime end{};
  std::map<std::string, std::string> attributes = {};
  std::string error = {};  // empty: success
};

// An OTLP request in JSON. Values pass through Redact.
Json OtlpRequest(const std::vector<TraceSpan>& spans, const std::string& service);

// Sends spans to an OTLP/HTTP collector, in batches on its own thread. Never blocks callers: spans
// that the collector rejects or cannot keep up with are dropped and, once, logged. Thread-safe.
class Tracer {
 public:
  // `endpoint` is a base URL as in OTEL_EXPORTER_OTLP_ENDPOINT, "http://127.0.0.1:4318"; empty:
  // disabled.
  Tracer(std::string endpoint, std::string service);
  // Flushes; an unresponsive collector gets a few seconds.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  bool on() const { return !endpoint_.empty(); }
  void Add(TraceSpan span);

 private:
  void Run(const std::stop_token& stop);
  void Send(const std::vector<TraceSpan>& spans);

  const std::string endpoint_;
  const std::string service_;
  HttpClient client_;
  Mutex mutex_;
  std::condition_variable_any news_;
  std::vector<TraceSpan> waiting_ GUARDED_BY(mutex_);
  bool has_warned_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace muster::net
