#pragma once

#include <string>

#include "muster/result.h"
#include "muster/task.h"

namespace muster::task {

// Secrets in the parameters of a call: a reference is resolved only where the definition has
// written it (TaskCall::references). `pointer` says where in the call's input the text stands.

// A text that goes out as it is: a header, a variable. References of the definition are resolved,
// data stays as it is. kInvalid: a reference that leads nowhere, or data that adds one to a text of
// the definition's, or completes one.
Result<std::string> ResolveReferences(const states::TaskCall& call, const std::string& pointer,
                                      const std::string& text);

// A URL, whose references are resolved when it is opened. kInvalid: data has brought one along or
// completes one, or what it fills in beside one could change where the URL leads.
Status CheckReferences(const states::TaskCall& call, const std::string& pointer,
                       const std::string& text);

}  // namespace muster::task
