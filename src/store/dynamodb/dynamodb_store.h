#pragma once

#include <memory>
#include <string>

#include "muster/store.h"
#include "store/dynamodb/dynamodb_client.h"

namespace muster::store {

// As in backends.h, which uses the default limits.
Result<std::unique_ptr<Store>> OpenDynamoDbStore(const DynamoDbPlace& place,
                                                 const std::string& space, Env& env,
                                                 const DynamoDbLimits& limits);

}  // namespace muster::store
