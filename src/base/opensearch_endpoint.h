#pragma once

#include <set>
#include <string>

#include "base/url.h"
#include "muster/result.h"

namespace muster {

// Where an OpenSearch or Elasticsearch cluster is and how to sign in, out of a URL:
//
//   opensearch+https://USER:${env:NAME}@HOST:PORT/PATH?…
//
//   ca=FILE            trust the authorities of this PEM file instead of the system's
//   api_key=REFERENCE  an API key, as ${env:NAME} or ${file:PATH}
//   aws=REGION         sign with AWS's credentials; for OpenSearch Serverless with service=aoss
//
// Credentials are given by reference only. The path and the other parameters are the caller's.
struct OpenSearchEndpoint {
  std::string base_url;  // http(s)://host:port
  std::string user = {};
  std::string password = {};
  std::string api_key = {};
  std::string ca_file = {};
  std::string aws_region = {};  // empty: no AWS
  std::string aws_service = "es";

  // kInvalid: another scheme, credentials in the clear, two ways to sign in. Parameters that are
  // neither an endpoint's nor in `others` are refused by name.
  static Result<OpenSearchEndpoint> FromUrl(const Url& url, const std::set<std::string>& others);
};

}  // namespace muster
