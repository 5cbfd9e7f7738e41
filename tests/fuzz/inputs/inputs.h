#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/pipeline.h"

namespace muster::fuzz {

// Something that reads bytes from outside. It may refuse them, but neither crash, throw nor hang.
struct Input {
  std::string_view name;
  void (*take)(std::string_view bytes) = nullptr;
};

std::span<const Input> FileInputs();     // what users write, and what is migrated
std::span<const Input> MachineInputs();  // state machines and what they compute
std::span<const Input> RecordInputs();   // what lies in stores and beside data
std::span<const Input> WireInputs();     // requests to `serve`, and answers of AWS and stores
std::span<const Input> ServiceInputs();  // sources that speak to a service, by its answers

// The first byte as a choice among `count`, taken off the bytes.
size_t TakeChoice(std::string_view& bytes, size_t count);

// The part before the first line "---", and the rest.
std::pair<std::string_view, std::string_view> TakePart(std::string_view bytes);

// The path of a file with this content and the end of its name, the same one every time; in
// MUSTER_FUZZ_FOLDER, or here.
std::string FileWith(std::string_view content, std::string_view end);

// Reads all documents of a source, as far as it gives them.
void ReadAll(pipeline::Source& source, void (*each)(const pipeline::Document& document));

}  // namespace muster::fuzz
