#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/metadata_objects.h"
#include "muster/migrate.h"

namespace muster::cli {

// One collection of the source, or several that were merged, and its counterpart in the sink.
struct Verified {
  std::string collection;
  std::string target;
  pipeline::VerifyReport report = {};
  std::optional<Error> failure = {};  // why the comparison could not be made

  bool Equal() const { return !failure && report.Equal(); }
};

// All that `muster verify` has compared.
struct VerifyOutcome {
  std::vector<Verified> collections;
  std::optional<std::vector<metadata::Reported>> metadata;  // none: it was not compared
  std::vector<pipeline::LeftOut> left_out;
  std::optional<Error> failure;  // of the first comparison that could not be made

  bool Equal() const;
};

// As JSON, if that is wanted. `checksums`: contents were compared, too.
void PrintVerified(const VerifyOutcome& outcome, bool checksums, Context& context);

}  // namespace muster::cli
