#include "support/opensearch_server.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "net/http.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

bool IsElasticsearch(const std::string& distribution) {
  return distribution.starts_with("elasticsearch");
}

int MajorVersion(const std::string& distribution) {
  return std::atoi(distribution.c_str() + distribution.find('-') + 1);
}

std::string Home(const std::string& distribution) {
  return std::string(MUSTER_THIRD_PARTY) + "/" + distribution;
}

// OpenSearch 3 needs Java 21, and Elasticsearch 7 none newer than it knows.
std::string JavaHome(const std::string& distribution) {
  const bool newest = distribution.starts_with("opensearch") && MajorVersion(distribution) >= 3;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/jvm", error)) {
    const std::string name = entry.path().filename();
    const bool recent =
        name.find("-21-") != std::string::npos || name.find("-25-") != std::string::npos;
    const bool fits = newest ? recent : name.find("-17-") != std::string::npos;
    if (fits && fs::exists(entry.path() / "bin/java")) return entry.path();
  }
  return "";
}

// Starts faster: without the optimising compiler and bytecode verification, which takes a quarter
// of the time.
constexpr const char* kStartFast =
    "-XX:TieredStopAtLevel=1\n-XX:+UnlockDiagnosticVMOptions\n-XX:-BytecodeVerificationRemote\n";

// Without the options that write below the distribution's folder, which belongs to another user.
void CopyJavaOptions(const std::string& from, const std::string& to) {
  std::ifstream options(from);
  std::ofstream copy(to);
  for (std::string line; std::getline(options, line);) {
    if (line.find("logs/") == std::string::npos) copy << line << "\n";
  }
}

Result<net::HttpResponse> Send(net::HttpRequest request) {
  static net::HttpClient client(net::HttpOptions{.use_proxy = false});
  return client.Send(request);
}

}  // namespace

std::string OpenSearchServer::DefaultDistribution() {
  const char* chosen = getenv("MUSTER_OPENSEARCH");
  return chosen != nullptr ? chosen : "opensearch-2.19.6";
}

std::string OpenSearchServer::Unavailable(const Options& options) {
  const std::string& name = options.distribution;
  if (!fs::exists(Home(name) + "/bin")) return name + " is not here: scripts/fetch " + name;
  if (JavaHome(name).empty()) {
    return "no Java for " + name + " in /usr/lib/jvm: it needs " +
           (name.starts_with("opensearch-3") ? "21 or 25" : "17");
  }
  return NoServerUser();
}

OpenSearchServer& OpenSearchServer::Shared() {
  static OpenSearchServer server{ForAll{}};
  return server;
}

OpenSearchServer::OpenSearchServer(const Options& options) : options_(options) { Launch(); }

OpenSearchServer::OpenSearchServer(ForAll) : shared_(true) {
  const char* repository = getenv("MUSTER_TEST_OPENSEARCH_REPOSITORY");
  // A test of another version has to start it itself.
  if (getenv("MUSTER_OPENSEARCH") == nullptr && repository != nullptr) {
    port_ = SharedPort("MUSTER_TEST_OPENSEARCH");
  }
  if (port_ == 0) {
    Launch();
    return;
  }
  repository_ = repository + ("/" + UniqueName("repository"));
  Call("GET", "/");
}

OpenSearchServer::~OpenSearchServer() {
  if (process_) return;
  const std::string mine = UniqueName("*");
  for (const std::string& target : {"/" + mine, "/_snapshot/" + mine, "/_index_template/" + mine}) {
    (void)Send({.method = "DELETE", .url = Url(target)});
  }
}

void OpenSearchServer::Launch() {
  if (const std::string reason = Unavailable(options_); !reason.empty()) {
    throw std::runtime_error(reason);
  }
  port_ = FreePort();
  process_ = std::make_unique<ServerProcess>("opensearch");
  repository_ = process_->folder() + "/repository";
  const bool elastic = IsElasticsearch(options_.distribution);
  const std::string config = process_->folder() + "/config";
  for (const char* name : {"/config/jvm.options.d", "/data", "/logs", "/tmp", "/repository"}) {
    fs::create_directories(process_->folder() + name);
  }
  const std::string original = Home(options_.distribution) + "/config";
  fs::copy(original + "/log4j2.properties", config + "/log4j2.properties");
  CopyJavaOptions(original + "/jvm.options", config + "/jvm.options");
  // The folder for more options came with Elasticsearch 7.7.
  const bool is_old = elastic && MajorVersion(options_.distribution) < 7;
  std::ofstream(config + (is_old ? "/jvm.options" : "/jvm.options.d/test.options"), std::ios::app)
      << "\n-Xms" << options_.heap_mib << "m\n-Xmx" << options_.heap_mib << "m\n-XX:-UseG1GC\n"
      << "-XX:+UseSerialGC\n"
      << (options_.warm ? "" : kStartFast);
  std::ofstream settings(config + (elastic ? "/elasticsearch.yml" : "/opensearch.yml"));
  settings << "cluster.name: muster-test\n"
              "node.name: test\n"
              "network.host: 127.0.0.1\n"
              "http.port: "
           << port_ << (is_old ? "\ntransport.tcp.port: 0\n" : "\ntransport.port: 0\n")
           << "discovery.type: single-node\n"
              "cluster.routing.allocation.disk.threshold_enabled: false\n"
              "path.data: "
           << process_->folder() << "/data\npath.logs: " << process_->folder()
           << "/logs\npath.repo: " << RepositoryFolder() << "\n";
  if (fs::exists(Home(options_.distribution) + "/modules/reindex")) {
    settings << "reindex.remote.whitelist: \"127.0.0.1:*\"\n";
  }
  if (elastic) settings << "xpack.security.enabled: false\n";
  // A whole distribution, with programs that another user may not run.
  if (is_old) settings << "xpack.ml.enabled: false\n";
  // The serial collector leaves garbage until it needs the room; a circuit breaker would count
  // that.
  if (options_.warm) settings << "indices.breaker.total.use_real_memory: false\n";
  settings.close();
  process_->GiveFolderToServer();
  StartProcess();
  if (elastic && MajorVersion(options_.distribution) >= 8) {
    // Elasticsearch 8 reports its version through a module that this distribution lacks.
    const std::string version = options_.distribution.substr(options_.distribution.find('-') + 1);
    front_ = std::make_unique<HttpRelay>(
        port_, [version](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
          if (request.target != "/") return std::nullopt;
          return Answer(200, R"({"version":{"number":")" + version + R"("}})");
        });
  }
}

std::string OpenSearchServer::Url(const std::string& target) const {
  return "http://127.0.0.1:" + std::to_string(port()) + target;
}

ServerProcess& OpenSearchServer::Own() const {
  if (shared_) throw std::runtime_error("other tests use this server, too");
  return *process_;
}

void OpenSearchServer::Start() {
  Own();
  StartProcess();
}

void OpenSearchServer::StartProcess() {
  const bool elastic = IsElasticsearch(options_.distribution);
  const std::string prefix = elastic ? "ES" : "OPENSEARCH";
  const std::string java = JavaHome(options_.distribution);
  process_->Start(
      {Home(options_.distribution) + "/bin/" + (elastic ? "elasticsearch" : "opensearch")},
      {prefix + "_PATH_CONF=" + process_->folder() + "/config",
       prefix + "_TMPDIR=" + process_->folder() + "/tmp", prefix + "_JAVA_HOME=" + java,
       "JAVA_HOME=" + java});
  process_->AwaitReady(
      [&] {
        const auto answer = Send({.url = Url("/_cluster/health?wait_for_status=yellow")});
        return answer && answer->status == 200;
      },
      std::chrono::minutes(3));
}

void OpenSearchServer::Kill() { Own().End(SIGKILL); }

void OpenSearchServer::Restart() {
  Kill();
  Start();
}

std::string OpenSearchServer::Call(const std::string& method, const std::string& target,
                                   const std::string& body) const {
  net::HttpRequest request{.method = method, .url = Url(target), .body = body};
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  const auto answer = Send(request);
  if (!answer) throw std::runtime_error(answer.error().ToString());
  if (answer->status >= 300) {
    throw std::runtime_error(method + " " + target + ": " + std::to_string(answer->status) + " " +
                             answer->body);
  }
  return answer->body;
}

}  // namespace muster::testing
