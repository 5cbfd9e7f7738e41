#pragma once

#include <memory>
#include <string>

#include "muster/replica.h"
#include "muster/store.h"
#include "replica/set_records.h"

namespace muster::replica {

// What each version of a projection was built from. The set's records contain the hash; the text is
// a separate, immutable record of kind "replica-definition", keyed by hash.

// Stores the definition. Idempotent. kInvalid: too large for a record.
Status KeepDefinition(store::Store& store, const std::string& set, const Projection& projection);

// The projection as a version was built: the given one if the hash matches or either has none,
// otherwise from the stored text. kIncompatible: this projection cannot run another definition.
Result<std::shared_ptr<Projection>> ProjectionBy(store::Store& store, const std::string& set,
                                                 const std::shared_ptr<Projection>& projection,
                                                 const std::string& hash);

// The hash of a version; if it had none, it adopts `projection`'s.
Result<std::string> AdoptedHash(store::Store& store, const std::string& set,
                                const Projection& projection, int version);

}  // namespace muster::replica
