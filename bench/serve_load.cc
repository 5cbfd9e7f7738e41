// `muster serve` under load: viewers of live events while a migration moves, and requests to its
// API; what that costs it in CPU, per request and per viewer, beside what the bare transport costs
// (/healthz by the same client at the same rate).

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "arguments.h"
#include "core/json.h"
#include "must.h"
#include "net/http.h"
#include "support/server_process.h"
#include "work/coordinator.h"

namespace muster::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr double kMostCpu = 0.25;  // of a core, for all viewers and requests

struct LoadOptions {
  int viewers = 50;
  int requests_per_second = 200;
  int items = 1'000;
  int duration_s = 20;
  bool smoke = false;
  bool json = false;
};

// A run of many items without a worker: what has to be read for every look.
class WideSource final : public pipeline::Source {
 public:
  explicit WideSource(int items) : items_(items) {}
  Result<std::vector<pipeline::Collection>> Collections() override {
    return std::vector<pipeline::Collection>{{"wide"}};
  }
  Result<std::vector<pipeline::Partition>> Partitions(const std::string& collection) override {
    std::vector<pipeline::Partition> partitions;
    for (int i = 0; i < items_; ++i) partitions.push_back({.collection = collection, .shard = i});
    return partitions;
  }
  Result<std::unique_ptr<pipeline::Reader>> Read(const pipeline::Partition&, const std::string&,
                                                 std::stop_token) override {
    return Error{Code::kInvalid, "there is nothing to read"};
  }
  std::optional<double> FractionBefore(const pipeline::Partition&, const std::string&) override {
    return std::nullopt;
  }

 private:
  const int items_;
};

void MakeWideRun(const std::string& store_url, const std::string& folder, int items) {
  Env& env = RealEnv();
  const auto store = Must(store::OpenStore(store_url, env));
  WideSource source(items);
  const auto sink = Must(pipeline::OpenSink("jsonl:" + folder + "/wide", env));
  const auto transforms = Must(pipeline::ParseTransforms("", ""));
  const auto letters = Must(pipeline::OpenDeadLetters(folder + "/wide.dead-letters.jsonl", "wide"));
  pipeline::Throttle throttle(env);
  pipeline::Pipeline pipeline{env, source, *transforms, *sink, *letters, throttle};
  const auto coordinator =
      Must(work::WorkCoordinator::Join(*store, env, {.name = "wide"}, {}, "bench"));
  Must(work::PrepareWork(*coordinator, pipeline, {}, {}));
}

class Server {
 public:
  explicit Server(const LoadOptions& options)
      : process_("serve-load"), worker_("serve-load-worker"), port_(testing::FreePort()) {
    const std::string folder = process_.folder();
    store_ = "sqlite:" + folder + "/store.db";
    MakeWideRun(store_, folder, options.items);
    process_.GiveFolderToServer();
    process_.Start({MUSTER_PROGRAM, "serve", "--store", store_, "--port", std::to_string(port_),
                    "--token-file", folder + "/tokens", "--audit-log", folder + "/audit",
                    "--max-viewers", std::to_string(options.viewers)},
                   {});
    for (int i = 0; Get("/healthz").empty(); ++i) {
      if (i > 600) throw std::runtime_error("it does not start: " + process_.Log());
      std::this_thread::sleep_for(milliseconds(50));
    }
    std::ifstream tokens(folder + "/tokens");
    std::string word;
    tokens >> word >> token_;
    StartMigration(options);
  }

  int port() const { return port_; }
  const std::string& token() const { return token_; }

  std::string Get(const std::string& path) {
    const auto response = client_.Send({.url = "http://127.0.0.1:" + std::to_string(port_) + path,
                                        .headers = {{"Authorization", "Bearer " + token_}}});
    return response && response->status == 200 ? response->body : "";
  }

  double CpuSeconds() {
    const std::string metrics = Get("/metrics");
    const std::string name = "\nprocess_cpu_seconds_total ";
    const size_t at = metrics.find(name);
    if (at == metrics.npos) throw std::runtime_error("no process_cpu_seconds_total");
    return std::stod(metrics.substr(at + name.size()));
  }

 private:
  // Slow enough to go on all the time, with several checkpoints a second.
  void StartMigration(const LoadOptions& options) {
    constexpr int kPerSecond = 400;
    std::ofstream file(worker_.folder() + "/orders.jsonl");
    for (int i = 0; i < kPerSecond * (options.duration_s * 5 + 60); ++i) {
      file << "{\"_id\":\"" << i << "\"}\n";
    }
    file.close();
    worker_.GiveFolderToServer();
    worker_.Start(
        {MUSTER_PROGRAM, "--store", store_, "worker", "--run", "moving", "--forever",
         "--docs-per-second", std::to_string(kPerSecond), "--max-docs-per-batch", "50",
         "--checkpoint-interval", "0.1", "--dead-letters",
         worker_.folder() + "/moving.dead-letters.jsonl",
         "jsonl:" + worker_.folder() + "/orders.jsonl", "jsonl:" + worker_.folder() + "/out"},
        {});
  }

  testing::ServerProcess process_;
  testing::ServerProcess worker_;
  const int port_;
  std::string store_;
  std::string token_;
  net::HttpClient client_{{.use_proxy = false}};
};

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect");
  return fd;
}

// Many viewers of the overview in one thread. Counts what comes.
class Viewers {
 public:
  Viewers(const Server& server, int count) {
    const std::string request =
        "GET /api/v1/events?topic=/api/v1/overview HTTP/1.1\r\nHost: 127.0.0.1:" +
        std::to_string(server.port()) + "\r\nAuthorization: Bearer " + server.token() + "\r\n\r\n";
    for (int i = 0; i < count; ++i) {
      sockets_.push_back({Connect(server.port()), POLLIN, 0});
      static_cast<void>(write(sockets_.back().fd, request.data(), request.size()));
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { Read(stop); });
  }
  ~Viewers() {
    thread_ = {};
    for (const pollfd& viewer : sockets_) close(viewer.fd);
  }
  int64_t deltas() const { return deltas_; }
  int64_t bytes() const { return bytes_; }
  int64_t lost() const { return lost_; }

 private:
  void Read(const std::stop_token& stop) {
    std::vector<char> buffer(1 << 16);
    while (!stop.stop_requested()) {
      poll(sockets_.data(), sockets_.size(), 100);
      for (pollfd& viewer : sockets_) {
        if ((viewer.revents & (POLLIN | POLLHUP)) == 0) continue;
        const ssize_t got = recv(viewer.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got <= 0) {
          if (got == 0) {
            ++lost_;
            viewer.events = 0;
          }
          continue;
        }
        bytes_ += got;
        const std::string_view text(buffer.data(), static_cast<size_t>(got));
        for (size_t at = text.find("event: delta"); at != text.npos;
             at = text.find("event: delta", at + 1)) {
          ++deltas_;
        }
      }
    }
  }

  std::vector<pollfd> sockets_;
  std::atomic<int64_t> deltas_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<int64_t> lost_ = 0;
  std::jthread thread_;
};

struct Phase {
  double seconds = 0;
  double cpu_share = 0;  // of one core
  int64_t requests = 0;
  int64_t failed = 0;
};

// Sends requests at an even rate; what comes late is sent at once after.
Phase Load(Server& server, int rate, const std::vector<std::string>& paths, int duration_s) {
  Phase phase;
  const double before = server.CpuSeconds();
  const auto start = Clock::now();
  const auto end = start + seconds(duration_s);
  for (int64_t i = 0; Clock::now() < end; ++i) {
    if (rate == 0) {
      std::this_thread::sleep_until(end);
      break;
    }
    std::this_thread::sleep_until(start + std::chrono::microseconds(1'000'000 * i / rate));
    ++phase.requests;
    if (server.Get(paths[static_cast<size_t>(i) % paths.size()]).empty()) ++phase.failed;
  }
  phase.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  phase.cpu_share = (server.CpuSeconds() - before) / phase.seconds;
  return phase;
}

int Run(const LoadOptions& options) {
  Server server(options);
  const std::vector<std::string> api{"/api/v1/overview", "/api/v1/stores/0/work/moving",
                                     "/api/v1/stores/0/work/wide/items", "/api/v1/failures",
                                     "/api/v1/session"};
  const int rate = options.requests_per_second;
  const Phase idle = Load(server, 0, api, options.duration_s);
  const Phase bare = Load(server, rate, {"/healthz"}, options.duration_s);
  const Phase requests = Load(server, rate, api, options.duration_s);
  Phase viewing;
  Phase both;
  double updates = 0;
  int64_t lost = 0;
  {
    const Viewers viewers(server, options.viewers);
    const int64_t before = viewers.deltas();
    viewing = Load(server, 0, api, options.duration_s);
    updates = static_cast<double>(viewers.deltas() - before) / viewing.seconds / options.viewers;
    both = Load(server, rate, api, options.duration_s);
    lost = viewers.lost();
  }
  const double per_request = 1e6 * (requests.cpu_share - idle.cpu_share) * requests.seconds /
                             static_cast<double>(requests.requests);
  const double per_bare =
      1e6 * (bare.cpu_share - idle.cpu_share) * bare.seconds / static_cast<double>(bare.requests);
  const double per_viewer = 1e3 * (viewing.cpu_share - idle.cpu_share) / options.viewers;
  const Json result{{"viewers", options.viewers},
                    {"requests_per_second", static_cast<double>(both.requests) / both.seconds},
                    {"updates_per_second_per_viewer", updates},
                    {"items", options.items},
                    {"cpu_share",
                     {{"idle", idle.cpu_share},
                      {"healthz", bare.cpu_share},
                      {"requests", requests.cpu_share},
                      {"viewers", viewing.cpu_share},
                      {"both", both.cpu_share}}},
                    {"cpu_us_per_request", per_request},
                    {"cpu_us_per_healthz", per_bare},
                    {"request_to_healthz", per_request / per_bare},
                    {"cpu_ms_per_second_per_viewer", per_viewer},
                    {"failed_requests", bare.failed + requests.failed + both.failed},
                    {"lost_viewers", lost}};
  if (options.json) {
    std::cout << ToJsonText(result) << '\n';
  } else {
    std::printf("%d viewers at %.1f updates/s, %.0f requests/s, %d items\n", options.viewers,
                updates, static_cast<double>(both.requests) / both.seconds, options.items);
    std::printf("CPU of one core: idle %.1f %%, viewers %.1f %%, requests %.1f %%, both %.1f %%\n",
                100 * idle.cpu_share, 100 * viewing.cpu_share, 100 * requests.cpu_share,
                100 * both.cpu_share);
    std::printf("per request %.0f us (/healthz %.0f us), per viewer %.2f ms a second\n",
                per_request, per_bare, per_viewer);
  }
  if (lost > 0 || result["failed_requests"] != 0) {
    std::cerr << "requests failed or viewers were lost: " << ToJsonText(result) << '\n';
    return 1;
  }
  if (!options.smoke && both.cpu_share > kMostCpu) {
    std::cerr << "it takes more than a quarter of a core\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::bench::LoadOptions options;
  muster::bench::Arguments arguments("What muster serve costs under load");
  arguments.AddNumber("--viewers", options.viewers, "of live events");
  arguments.AddNumber("--requests", options.requests_per_second, "a second");
  arguments.AddNumber("--items", options.items, "of a run that is shown");
  arguments.AddNumber("--seconds", options.duration_s, "of each of five phases");
  arguments.AddFlag("--smoke", options.smoke, "only see that it works");
  arguments.AddFlag("--json", options.json, "print JSON");
  arguments.Parse(argc, argv);
  if (options.smoke) {
    options.viewers = 5;
    options.requests_per_second = 20;
    options.items = 10;
    options.duration_s = 1;
  }
  try {
    return muster::bench::Run(options);
  } catch (const std::exception& error) {
    std::cerr << "serve_load: " << error.what() << '\n';
    return 1;
  }
}
