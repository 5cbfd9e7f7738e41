#include "support/dynamodb_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "core/json.h"
#include "net/http.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJavac = "/usr/bin/javac";  // its launcher is compiled each time
constexpr const char* kHome = MUSTER_THIRD_PARTY "/dynamodb-local-2.6.1";
constexpr const char* kProgram = MUSTER_TEST_SUPPORT "/DynamoDbLocal.java";

Result<net::HttpResponse> Send(int port, const std::string& operation, const std::string& body) {
  static net::HttpClient client(net::HttpOptions{.use_proxy = false});
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

void SetCredentials() {
  setenv("AWS_ACCESS_KEY_ID", "test", 0);
  setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret", 0);
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
  static DynamoDbServer server{ForAll{}};
  return server;
}

DynamoDbServer::DynamoDbServer(const Options& options) : options_(options) { Launch(); }

DynamoDbServer::DynamoDbServer(ForAll) : shared_(true), port_(SharedPort("MUSTER_TEST_DYNAMODB")) {
  if (port_ == 0) {
    Launch();
    return;
  }
  SetCredentials();
  Call("ListTables", "{}");
}

DynamoDbServer::~DynamoDbServer() {
  if (!process_) DeleteTables();
}

void DynamoDbServer::Launch() {
  if (const std::string reason = Unavailable(); !reason.empty()) throw std::runtime_error(reason);
  SetCredentials();
  port_ = FreePort();
  process_ = std::make_unique<ServerProcess>("dynamodb");
  fs::create_directories(process_->folder() + "/data");
  process_->GiveFolderToServer();
  StartProcess();
}

void DynamoDbServer::DeleteTables() const {
  // On any failure here, the server is stopped soon after.
  try {
    const std::string prefix = UniqueName("");
    std::string from = prefix;  // the names are in order
    while (true) {
      const Json page =
          Json::parse(Call("ListTables", ToJsonText({{"ExclusiveStartTableName", from}})));
      for (const Json& name : page["TableNames"]) {
        if (!name.get<std::string>().starts_with(prefix)) return;
        Call("DeleteTable", ToJsonText({{"TableName", name}}));
      }
      if (!page.contains("LastEvaluatedTableName")) return;
      from = page["LastEvaluatedTableName"].get<std::string>();
    }
  } catch (const std::exception&) {
  }
}

std::string DynamoDbServer::Endpoint(int port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

std::string DynamoDbServer::Url(const std::string& table, int port) {
  return "dynamodb://local/" + table + "?create=true&endpoint=" + Endpoint(port);
}

ServerProcess& DynamoDbServer::Own() const {
  if (shared_) throw std::runtime_error("other tests use this server, too");
  return *process_;
}

void DynamoDbServer::Start() {
  Own();
  StartProcess();
}

void DynamoDbServer::StartProcess() {
  std::vector<std::string> command = {"java", "-Xmx" + std::to_string(options_.heap_mib) + "m",
                                      "-XX:+UseSerialGC"};
  if (!options_.warm) command.emplace_back("-XX:TieredStopAtLevel=1");
  const std::vector<std::string> rest = {"-Duser.home=" + process_->folder(),
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
    command.insert(command.end(), {"-dbPath", process_->folder() + "/data"});
  } else {
    command.emplace_back("-inMemory");
  }
  process_->Start(command, {});
  process_->AwaitReady([&] {
    const auto answer = Send(port_, "ListTables", "{}");
    return answer && answer->status == 200;
  });
}

void DynamoDbServer::Kill() { Own().End(SIGKILL); }

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
