#include "replica/definitions.h"

#include "core/record_fields.h"
#include "core/sha256.h"
#include "replica/operations.h"

namespace muster::replica {
namespace {

constexpr char kKind[] = "replica-definition";
constexpr size_t kHashLength = 12;

struct Definition {
  std::string text = {};
};
// Those without a version have the same fields.
constexpr RecordTable<Definition, 1> kTable{
    RecordFormat{kKind, 1}, {{Required<Definition, &Definition::text>("definition")}}};

std::string KeyOf(const std::string& set, const std::string& projection, const std::string& hash) {
  return set + "/" + projection + "/" + hash;
}

}  // namespace

std::string DefinitionHash(const Projection& projection) {
  const std::string definition = projection.Definition();
  return definition.empty() ? "" : Sha256Hex(definition).substr(0, kHashLength);
}

Status KeepDefinition(store::Store& store, const std::string& set, const Projection& projection) {
  const std::string hash = DefinitionHash(projection);
  if (hash.empty()) return {};
  store::Record record{.kind = kKind,
                       .queue = kReplicaQueue,
                       .key = KeyOf(set, projection.name(), hash),
                       .body = ToJsonText(kTable.ToJson({.text = projection.Definition()}))};
  if (record.body.size() > store::kMaxBodyBytes) {
    return Error{Code::kInvalid,
                 "the definition of projection '" + projection.name() + "' is larger than " +
                     std::to_string(store::kMaxBodyBytes / 1024) + " KiB",
                 "move statements into functions of the database"};
  }
  MUSTER_ASSIGN(const auto stored, store.Get(record.kind, record.key));
  if (stored) return {};
  const store::Change put = store::Change::Put(record, store::Due::Never());
  // Another process may have stored it first; the text is the same.
  MUSTER_TRY(store.Write({&put, 1}));
  return {};
}

Result<std::shared_ptr<Projection>> ProjectionBy(store::Store& store, const std::string& set,
                                                 const std::shared_ptr<Projection>& projection,
                                                 const std::string& hash) {
  const std::string own = DefinitionHash(*projection);
  if (hash.empty() || own.empty() || own == hash) return projection;
  const std::string key = KeyOf(set, projection->name(), hash);
  MUSTER_ASSIGN(const auto stored, store.Get(kKind, key));
  if (!stored) {
    return Error{Code::kCorrupt, "definition " + hash + " of projection '" + projection->name() +
                                     "' is not in the store"};
  }
  MUSTER_ASSIGN(const Definition definition, kTable.Parse(stored->body, "record '" + key + "'"));
  return projection->WithDefinition(definition.text);
}

Result<std::string> AdoptedHash(store::Store& store, const std::string& set,
                                const Projection& projection, int version) {
  const std::string own = DefinitionHash(projection);
  if (own.empty()) return own;
  MUSTER_TRY(KeepDefinition(store, set, projection));
  std::string hash;
  MUSTER_TRY(ChangeDesired(store, set, projection.name(), [&](DesiredState& desired) -> Status {
    hash = desired.definitions.try_emplace(std::to_string(version), own).first->second;
    return {};
  }));
  return hash;
}

}  // namespace muster::replica
