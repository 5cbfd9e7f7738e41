#pragma once

#include <memory>
#include <string>

#include "muster/migrate.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// A writer for an item of `collection` that also writes to the targets its documents choose:
// `writer`, which is open for the collection's own target, and others with the same fence, each
// opened when the first document goes there. Only sinks that keep no progress take chosen targets,
// so a batch that ends halfway is written again as a whole. If no document can choose one, returns
// `writer` itself. `pipeline` must outlive the result. Errors are those of ChosenTargets::Admit and
// Sink::Open.
Result<std::unique_ptr<Writer>> DividedWriter(const Pipeline& pipeline,
                                              const std::string& collection, const Fence& fence,
                                              std::unique_ptr<Writer> writer);

// kNotFound: the sink has no target of this name.
Status CheckExists(Sink& sink, const std::string& target);

}  // namespace muster::pipeline
