#pragma once

#include <memory>

#include "muster/states.h"

namespace muster::task {

// Checks that all rows of a rank have arrived, for the resource `muster:reconcile`:
//   {"rank": 500,
//    "staging": "staging/acme", "target": "sqlite:zeus.db",
//    "extracted": {"User": …},                 results of muster:copy, by object
//    "transformed": {"identity-people": …},    results of muster:transform, by script
//    "scripts": {"identity-people": {
//      "schema": "identity", "table": "people",
//      "counts": {"people": "Simpplr__People__c"},            each row of this object becomes one
//                                                             of the table, or is rejected
//      "references": {"identity.people_categories": 200}}}}   the rank that loads a parent
//
// Extracted rows must be in the staging files, where they are counted again; rows of a script's
// SELECT, and of the objects it `counts`, must be loaded or rejected; what a script has read must
// be what is staged now; and every row of a loaded table must have its parents in the target.
// Failed tasks, whose result is {"Error": …}, are left out.
//
// The result is {"extracted": N, "unreadable": N, "staged": N, "read": N, "loaded": N,
// "rejected": N, "foreign_keys": N}: unreadable rows are neither extracted nor staged; read, loaded
// and rejected count the SELECTs' rows.
//
// Failures list up to twenty findings of each kind: Reconcile.ForeignKey (with child, parent and
// the rank that loads it), Reconcile.Mismatch; Reconcile.Unavailable and so on. Changes nothing.
std::unique_ptr<states::TaskExecutor> MakeReconcileExecutor();

}  // namespace muster::task
