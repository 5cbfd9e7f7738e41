#pragma once

#include <memory>
#include <string>

#include "muster/replica.h"
#include "muster/store.h"
#include "replica/set_records.h"

namespace muster {

// What each version of a projection was built from. The set's records name the hash; the text is a
// record of its own, of the kind "replica-definition", by hash and never changed.

// Of its definition, for people to compare; empty: it states none.
std::string DefinitionHash(const Projection& projection);

// Keeps the definition. May be repeated. kInvalid: it is too large for a record.
Status KeepDefinition(Store& store, const std::string& set, const Projection& projection);

// The projection as a version of it was built: itself where the hash is its own or one of the two
// states none, else by the text that was kept. kIncompatible: it cannot be run by another one.
Result<std::shared_ptr<Projection>> ProjectionBy(Store& store, const std::string& set,
                                                 const std::shared_ptr<Projection>& projection,
                                                 const std::string& hash);

// The hash of a version, which is that of `projection` from now on if there was none.
Result<std::string> AdoptedHash(Store& store, const std::string& set, const Projection& projection,
                                int version);

}  // namespace muster
