#include "serve/views.h"

#include "serve/work_view.h"

namespace muster::serve {

Result<Json> Views::ReadOverview(const Names& /*none*/) { return overview_.All(); }

Result<Json> Views::ReadFailures(const Names& /*none*/) { return overview_.Failures(); }

Result<Json> Views::ReadDeadLetterFiles(const Names& /*none*/) {
  return overview_.DeadLetterFiles();
}

Result<Json> Views::ReadMigration(const Names& names) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(names[0]));
  return MigrationViews::One(*store, names[1]);
}

Result<Json> Views::ReadTask(const Names& names) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(names[0]));
  for (const plan::Phase phase : {plan::Phase::kExtract, plan::Phase::kTransform}) {
    if (names[2] == NameOf(phase)) {
      return MigrationViews::Task(*store, names[1], phase, names[3]);
    }
  }
  return Error{Code::kNotFound, "unknown phase '" + names[2] + "'"};
}

Result<Json> Views::ReadWork(const Names& names) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(names[0]));
  return WorkDetail(*store, names[1], series_, metrics_);
}

Result<Json> Views::ReadItems(const Names& names) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(names[0]));
  return WorkItems(*store, names[1]);
}

Result<Json> Views::ReadItem(const Names& names) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(names[0]));
  return WorkItemDetail(*store, names[1], names[2]);
}

Result<Json> Views::ReadReplicaSet(const Names& names) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(names[0]));
  return replicas_.One(site_, *store, names[1], series_);
}

}  // namespace muster::serve
