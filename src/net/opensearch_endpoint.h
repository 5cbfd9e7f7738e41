#pragma once

#include <set>
#include <string>

#include "core/url.h"
#include "muster/result.h"

namespace muster::net {

// Where an OpenSearch or Elasticsearch cluster is and how to authenticate, from a URL:
//
//   opensearch+https://USER:${env:NAME}@HOST:PORT/PATH?…
//
//   api_key=REFERENCE  an API key, as ${env:NAME} or ${file:PATH}
//   token=REFERENCE    a bearer token, likewise
//   aws=REGION         sign with AWS credentials; for OpenSearch Serverless with service=aoss
//   cert=FILE&key=FILE a client certificate, PEM; by itself, or beside one of the above
//   ca=FILE            trust the CAs in this PEM file instead of the system's
//   insecure=yes       trust any server: for tests
//
// Credentials must be references. The path and other parameters are up to the caller.
struct OpenSearchEndpoint {
  std::string base_url;  // http(s)://host:port
  std::string user = {};
  std::string password = {};
  std::string api_key = {};
  std::string token = {};
  std::string cert_file = {};
  std::string key_file = {};
  std::string ca_file = {};
  bool insecure = false;
  std::string aws_region = {};  // empty: no AWS
  std::string aws_service = "es";

  // kInvalid: another scheme, plain-text credentials, parameters that exclude each other or need
  // TLS. Parameters that are neither an endpoint's nor in `others` are rejected by name.
  static Result<OpenSearchEndpoint> FromUrl(const Url& url, const std::set<std::string>& others);
};

}  // namespace muster::net
