#pragma once

#include <memory>
#include <string>

#include "muster/store.h"
#include "store/dynamodb_client.h"

namespace muster {

// As the one in backends.h, which takes the usual limits.
Result<std::unique_ptr<Store>> OpenDynamoDbStore(const DynamoDbPlace& place,
                                                 const std::string& space, Env& env,
                                                 const DynamoDbLimits& limits);

}  // namespace muster
