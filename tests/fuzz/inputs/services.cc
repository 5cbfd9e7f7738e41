#include <atomic>
#include <memory>
#include <mutex>

#include "fuzz/inputs/inputs.h"
#include "muster/migrate.h"
#include "net/s3.h"
#include "support/hasty_env.h"
#include "support/http_server.h"

namespace muster::fuzz {
namespace {

constexpr size_t kMostAnswers = 40;
constexpr int kRunsOfAServer = 500;  // it records every request

// Responds with the parts of the bytes in turn, then repeats the last one. After too many requests
// a client gets a 404.
class Service {
 public:
  Service()
      : server_([this](const testing::HttpServerRequest& request) { return Reply(request); }) {}

  void SetAnswers(std::string_view bytes) {
    std::lock_guard lock(mutex_);
    rest_ = bytes;
    answers_ = 0;
  }

  std::string Address() const { return "127.0.0.1:" + std::to_string(server_.port()); }

 private:
  testing::HttpServerReply Reply(const testing::HttpServerRequest& request) {
    // A login response names the next host, which must not be arbitrary.
    if (request.target.ends_with("/token")) return testing::Answer(200, R"({"access_token":"t"})");
    std::lock_guard lock(mutex_);
    if (++answers_ > kMostAnswers) return testing::Answer(404, "[]");
    const auto [answer, rest] = TakePart(rest_);
    std::string body(answer);
    if (!rest.empty()) rest_ = std::string(rest);
    return testing::Answer(200, body, {{"Sforce-Locator", "null"}});
  }

  std::mutex mutex_;
  std::string rest_;
  size_t answers_ = 0;
  testing::HttpServer server_;
};

Service& Answering(std::string_view bytes) {
  static std::unique_ptr<Service> service;
  static int runs = 0;
  if (runs++ % kRunsOfAServer == 0) service = std::make_unique<Service>();
  service->SetAnswers(bytes);
  return *service;
}

void ReadFrom(std::string_view bytes, const std::string& scheme, const std::string& rest) {
  const Service& service = Answering(bytes);
  testing::HastyEnv env;
  const auto source = pipeline::OpenSource(scheme + service.Address() + rest, env);
  if (source) ReadAll(**source, [](const pipeline::Document&) {});
}

void ReadSalesforce(std::string_view bytes) {
  setenv("MUSTER_FUZZ_SECRET", "secret", 1);
  ReadFrom(bytes, "salesforce+http://",
           "/User?client_id=app&client_secret=${env:MUSTER_FUZZ_SECRET}");
}

void ReadOpenSearch(std::string_view bytes) { ReadFrom(bytes, "opensearch+http://", "/index"); }

// Lists and reads a bucket.
void ReadBucket(std::string_view bytes) {
  setenv("AWS_ACCESS_KEY_ID", "id", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  Service& service = Answering(bytes);
  testing::HastyEnv env;
  net::S3Client client(
      {.bucket = "bucket", .endpoint = "http://" + service.Address(), .path_style = true}, env);
  static_cast<void>(client.List());
  static_cast<void>(client.Size("key"));
  static_cast<void>(client.Read("key", 0, 4));
}

constexpr Input kInputs[] = {{"salesforce_source", ReadSalesforce},
                             {"opensearch_source", ReadOpenSearch},
                             {"bucket", ReadBucket}};

}  // namespace

std::span<const Input> ServiceInputs() { return kInputs; }

}  // namespace muster::fuzz
