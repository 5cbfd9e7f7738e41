#pragma once

#include <string>

#include "muster/result.h"
#include "muster/states.h"

namespace muster::task {

// Secret references in the parameters of a call are resolved only where the definition has them
// (TaskCall::references). `pointer` is the JSON pointer of the text in the call's input.

// For a text that is sent as it is, such as a header: resolves the definition's references and
// leaves data alone. kInvalid: a reference cannot be resolved, or data adds or completes one.
Result<std::string> ResolveReferences(const states::TaskCall& call, const std::string& pointer,
                                      const std::string& text);

// For a URL, whose references are resolved when it is opened. kInvalid: data adds or completes one,
// or could change where a URL with a reference leads.
Status CheckReferences(const states::TaskCall& call, const std::string& pointer,
                       const std::string& text);

}  // namespace muster::task
