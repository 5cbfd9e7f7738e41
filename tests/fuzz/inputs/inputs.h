#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/pipeline.h"

namespace muster::fuzz {

// A reader of external bytes. It may reject them, but must not crash, throw or hang.
struct Input {
  std::string_view name;
  void (*take)(std::string_view bytes) = nullptr;
};

std::span<const Input> FileInputs();     // users' files and migrated data
std::span<const Input> MachineInputs();  // state machines and expressions
std::span<const Input> RecordInputs();   // records of stores, and metadata next to data
std::span<const Input> WireInputs();     // requests to `serve`, and responses of AWS and stores
std::span<const Input> ServiceInputs();  // responses to sources that call a service
std::span<const Input> StoredInputs();   // records and files that only their readers know
std::span<const Input> TextInputs();     // short texts, and files of other tools

// Removes the first byte and returns it as a choice among `count`.
size_t TakeChoice(std::string_view& bytes, size_t count);

// The part before the first line "---", and the rest.
std::pair<std::string_view, std::string_view> TakePart(std::string_view bytes);

// The path of a file with this content and extension, always the same one, in MUSTER_FUZZ_FOLDER or
// the current folder.
std::string FileWith(std::string_view content, std::string_view end);

// Reads all documents of a source, up to the first error.
void ReadAll(pipeline::Source& source, void (*each)(const pipeline::Document& document));

}  // namespace muster::fuzz
