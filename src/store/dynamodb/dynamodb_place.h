#pragma once

#include <string>

#include "core/url.h"
#include "muster/result.h"

namespace muster::store {

// The table that a URL names: dynamodb://REGION/TABLE?endpoint=URL&create=true&ca=PATH
struct DynamoDbPlace {
  std::string region;
  std::string table;
  std::string endpoint;      // https://dynamodb.REGION.amazonaws.com by default
  std::string ca_file = {};  // PEM, trusted instead of the system's CAs
  bool create = false;       // the table, if missing

  // "DynamoDB table TABLE in REGION", for messages.
  std::string Name() const;
};

// kInvalid, with the correct form.
Result<DynamoDbPlace> ParseDynamoDbPlace(const Url& url);

}  // namespace muster::store
