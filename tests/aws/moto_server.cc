#include "aws/moto_server.h"

#include <filesystem>
#include <stdexcept>

#include "net/http.h"

namespace muster::testing {
namespace {

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
  process_.AwaitReady([&] { return !!http.Send({.url = Url() + "/moto-api/data.json"}); });
}

std::map<std::string, std::string> MotoServer::Variables() const {
  return {{"AWS_REGION", "us-east-1"},
          {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
          {"AWS_SECRET_ACCESS_KEY", "a secret key"},
          {"AWS_ENDPOINT_URL", Url()}};
}

}  // namespace muster::testing
