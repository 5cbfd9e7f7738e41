#include "aws/moto_server.h"

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "net/http.h"

namespace muster::testing {
namespace {

constexpr std::chrono::seconds kPatience{60};

const std::string kFolder = MUSTER_THIRD_PARTY "/moto";

}  // namespace

std::string MotoServer::Missing() {
  if (std::filesystem::exists(kFolder + "/.fetched")) return NoServerUser();
  return kFolder + " is not there: run scripts/moto";
}

MotoServer::MotoServer() : port_(FreePort()), process_("moto") {
  process_.Start(
      {"/usr/bin/python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", std::to_string(port_)},
      {"PYTHONPATH=" + kFolder, "PYTHONDONTWRITEBYTECODE=1"});
  net::HttpClient http;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!http.Send({.url = Url() + "/moto-api/data.json"})) {
    if (!process_.IsRunning() || std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("moto does not start:\n" + process_.Log());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::map<std::string, std::string> MotoServer::Variables() const {
  return {{"AWS_REGION", "us-east-1"},
          {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
          {"AWS_SECRET_ACCESS_KEY", "a secret key"},
          {"AWS_ENDPOINT_URL", Url()}};
}

}  // namespace muster::testing
