#include "core/run_status.h"

namespace muster {

std::string NameOf(RunStatus status) { return std::string(kRunStatusNames.NameOf(status)); }

}  // namespace muster
