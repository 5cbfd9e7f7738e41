// Fuzzes everything that reads external bytes, except src/lucene. One program for all, so that it
// costs one link; MUSTER_FUZZ names the input to fuzz, `list` prints all names.

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fuzz/inputs/inputs.h"

namespace muster::fuzz {
namespace {

std::vector<Input> AllInputs() {
  std::vector<Input> all;
  for (const auto inputs : {FileInputs(), MachineInputs(), RecordInputs(), WireInputs(),
                            ServiceInputs(), StoredInputs(), TextInputs()}) {
    all.insert(all.end(), inputs.begin(), inputs.end());
  }
  return all;
}

Input Chosen() {
  const char* variable = std::getenv("MUSTER_FUZZ");
  const std::string_view name = variable == nullptr ? "" : variable;
  for (const Input& input : AllInputs()) {
    if (input.name == name) return input;
  }
  for (const Input& input : AllInputs()) std::cout << input.name << '\n';
  std::cout.flush();
  std::_Exit(name == "list" ? 0 : 2);  // libFuzzer treats any other exit as a failure
}

}  // namespace

size_t TakeChoice(std::string_view& bytes, size_t count) {
  if (bytes.empty()) return 0;
  const auto choice = static_cast<size_t>(static_cast<unsigned char>(bytes.front()));
  bytes.remove_prefix(1);
  // Digits and letters keep seeds readable.
  return (choice >= 'a' ? choice - 'a' + 10 : choice >= '0' ? choice - '0' : choice) % count;
}

std::pair<std::string_view, std::string_view> TakePart(std::string_view bytes) {
  constexpr std::string_view kMark = "\n---\n";
  const size_t at = bytes.find(kMark);
  if (at == std::string_view::npos) return {bytes, ""};
  return {bytes.substr(0, at), bytes.substr(at + kMark.size())};
}

std::string FileWith(std::string_view content, std::string_view end) {
  const char* variable = std::getenv("MUSTER_FUZZ_FOLDER");
  const std::string folder = variable == nullptr ? "." : variable;
  const std::string path = folder + "/input" + std::string(end);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  return path;
}

void ReadAll(pipeline::Source& source, void (*each)(const pipeline::Document& document)) {
  const auto collections = source.Collections();
  if (!collections) return;
  for (const pipeline::Collection& collection : *collections) {
    static_cast<void>(source.Describe(collection.name));
    const auto partitions = source.Partitions(collection.name);
    if (!partitions) return;
    for (const pipeline::Partition& partition : *partitions) {
      auto reader = source.Read(partition, "", {});
      while (reader) {
        const auto document = (*reader)->Next();
        if (!document || !*document) break;
        each(**document);
      }
    }
  }
}

}  // namespace muster::fuzz

namespace {
muster::fuzz::Input chosen;
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  chosen = muster::fuzz::Chosen();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen.take({reinterpret_cast<const char*>(data), size});
  return 0;
}
