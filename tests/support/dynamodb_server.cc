#include "support/dynamodb_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "base/http.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJavac =
    "/usr/bin/javac";  // the program that starts it is compiled each time
constexpr const char* kHome = MUSTER_THIRD_PARTY "/dynamodb-local-2.6.1";
constexpr const char* kProgram = MUSTER_TEST_SUPPORT "/DynamoDbLocal.java";

Result<HttpResponse> Send(int port, const std::string& operation, const std::string& body) {
  static HttpClient client(HttpOptions{.use_proxy = false});
  return client.Send(
      {.method = "POST",
       .url = DynamoDbServer::Endpoint(port) + "/",
       .headers = {{"X-Amz-Target", "DynamoDB_20120810." + operation},
                   {"Content-Type", "application/x-amz-json-1.0"},
                   // Read, but not checked.
                   {"Authorization",
                    "AWS4-HMAC-SHA256 Credential=test/20260101/local/dynamodb/aws4_request, "
                    "SignedHeaders=host, Signature=none"}},
       .body = body});
}

}  // namespace

std::string DynamoDbServer::Unavailable() {
  if (!fs::exists(kHome)) {
    return "DynamoDB Local is not here: scripts/fetch dynamodb-local-2.6.1";
  }
  if (!fs::exists(kJavac)) return "no Java compiler: apt-get install default-jdk-headless";
  return NoServerUser();
}

DynamoDbServer& DynamoDbServer::Shared() {
  static DynamoDbServer server;
  return server;
}

DynamoDbServer::DynamoDbServer(const Options& options)
    : options_(options), port_(FreePort()), process_("dynamodb") {
  if (const std::string reason = Unavailable(); !reason.empty()) throw std::runtime_error(reason);
  setenv("AWS_ACCESS_KEY_ID", "test", 0);
  setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret", 0);
  fs::create_directories(process_.folder() + "/data");
  process_.GiveFolderToServer();
  Start();
}

std::string DynamoDbServer::Endpoint(int port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

std::string DynamoDbServer::Url(const std::string& table, int port) {
  return "dynamodb://local/" + table + "?create=true&endpoint=" + Endpoint(port);
}

void DynamoDbServer::Start() {
  std::vector<std::string> command = {"java", "-Xmx" + std::to_string(options_.heap_mib) + "m",
                                      "-XX:+UseSerialGC"};
  if (!options_.warm) command.emplace_back("-XX:TieredStopAtLevel=1");
  const std::vector<std::string> rest = {"-Duser.home=" + process_.folder(),
                                         std::string("-Djava.library.path=") + kHome,
                                         "-cp",
                                         std::string(kHome) + "/*",
                                         kProgram,
                                         "-port",
                                         std::to_string(port_),
                                         "-sharedDb",
                                         "-disableTelemetry"};
  command.insert(command.end(), rest.begin(), rest.end());
  if (options_.durable) {
    command.insert(command.end(), {"-dbPath", process_.folder() + "/data"});
  } else {
    command.emplace_back("-inMemory");
  }
  process_.Start(command, {});
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (true) {
    const auto answer = Send(port_, "ListTables", "{}");
    if (answer && answer->status == 200) return;
    if (!process_.IsRunning()) throw std::runtime_error("the server ended: " + process_.Log());
    if (std::chrono::steady_clock::now() > give_up) {
      throw std::runtime_error("the server does not start: " + process_.Log());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void DynamoDbServer::Kill() { process_.End(SIGKILL); }

void DynamoDbServer::Restart() {
  Kill();
  Start();
}

std::string DynamoDbServer::Call(const std::string& operation, const std::string& body) const {
  const auto answer = Send(port_, operation, body);
  if (!answer) throw std::runtime_error(answer.error().ToString());
  if (answer->status != 200) {
    throw std::runtime_error(operation + ": " + std::to_string(answer->status) + " " +
                             answer->body);
  }
  return answer->body;
}

}  // namespace muster::testing
