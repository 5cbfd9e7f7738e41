#pragma once

#include <memory>

#include "muster/task.h"

namespace muster::task {

// Looks whether all rows of a rank have arrived, for the resource `muster:reconcile`:
//   {"rank": 500,
//    "staging": "staging/acme", "target": "sqlite:zeus.db",
//    "extracted": {"User": …},                 what muster:copy has answered, by object
//    "transformed": {"identity-people": …},    what muster:transform has answered, by script
//    "scripts": {"identity-people": {
//      "schema": "identity", "table": "people",
//      "counts": {"people": "Simpplr__People__c"},            each row of this object is a row of
//                                                             this table, or was rejected
//      "references": {"identity.people_categories": 200}}}}   who loads what its keys point to
//
// Rows extracted have to be in the staging files, counted again there; rows of a script's SELECT,
// and of the objects that it `counts`, have to be loaded or rejected; what a script has read has to
// be what is staged now; and no row of a table that was loaded refers to a parent that the target
// does not have. Tasks that have failed, whose answer is {"Error": …}, are left out.
//
// The result is {"extracted": N, "unreadable": N, "staged": N, "read": N, "loaded": N,
// "rejected": N, "foreign_keys": N}: what the source could not give as rows is neither extracted
// nor staged; `read` is of the SELECTs, and so are loaded and rejected.
//
// Failures name everything that is wrong, at most twenty of each kind: Reconcile.ForeignKey (with
// child, parent and the rank that loads it), Reconcile.Mismatch; Reconcile.Unavailable and so on.
// Nothing is changed, whatever it finds.
std::unique_ptr<states::TaskExecutor> MakeReconcileExecutor();

}  // namespace muster::task
