#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/http.h"
#include "base/json.h"
#include "muster/env.h"

namespace muster {

// Something that was done, from when to when. Spans of one `trace` text are one trace, whoever
// sends them; `itself` and `parent` are texts as well, of which ids are made.
struct TraceSpan {
  std::string name;
  std::string trace;
  std::string itself;
  std::string parent = {};  // empty: it is a root
  WallTime start{};
  WallTime end{};
  std::map<std::string, std::string> attributes = {};
  std::string error = {};  // empty: it went well
};

// A request of OpenTelemetry's OTLP in its JSON form. Values pass through Redact.
Json OtlpRequest(const std::vector<TraceSpan>& spans, const std::string& service);

// Sends spans to a collector that speaks OTLP/HTTP, in a thread of its own and a few at a time.
// Nothing waits for it: what a collector does not take, or not fast enough, is dropped and, once,
// logged. Thread-safe.
class Tracer {
 public:
  // `endpoint` is a base URL as in OTEL_EXPORTER_OTLP_ENDPOINT, "http://127.0.0.1:4318"; empty:
  // nothing is sent.
  Tracer(std::string endpoint, std::string service);
  // Sends what is left; a collector that does not answer is given a few seconds.
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
  std::mutex mutex_;
  std::condition_variable_any news_;
  std::vector<TraceSpan> waiting_;
  bool told_ = false;
  std::jthread thread_;
};

}  // namespace muster
