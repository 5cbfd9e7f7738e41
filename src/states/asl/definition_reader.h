#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "states/asl/definition.h"

namespace muster::states {

inline constexpr size_t kMaxNameChars = 80;
inline constexpr int kMaxMachineDepth = 100;
inline constexpr double kMaxSeconds = 99'999'999;

// The length of a text in characters, not bytes.
size_t CountChars(std::string_view text);

// Reads the fields of one object, and reports unknown ones.
class Fields {
 public:
  Fields(const Node& node, Source& source) : node_(node), source_(source) {}

  const Node* Find(std::string_view name);

  // Whether the object has it, of any type.
  bool Has(std::string_view name) const { return node_.Find(name) != nullptr; }

  // A field of this type. Null: it is missing, or of another type, which is a problem.
  const Node* String(std::string_view name);
  const Node* Object(std::string_view name);
  const Node* Array(std::string_view name);

  // Reports every field that was not asked for: "`what` has no field X".
  void RejectOthers(std::string_view what, std::string_view hint);

 private:
  const Node& node_;
  Source& source_;
  std::set<std::string, std::less<>> known_;
};

// Parses one definition.
//
// definition_reader.cc reads machines and states in general, definition_fields.cc and
// definition_errors.cc what all states have, definition_states.cc and files named by type the types
// of states.
class DefinitionReader {
 public:
  DefinitionReader(Source& source, JsonataEngine* jsonata) : source_(source), jsonata_(jsonata) {}

  Definition Read(const Node& root);

 private:
  int ReadMachine(const Node& node, bool outermost, bool jsonata, Fields& fields);
  State ReadState(const std::string& name, const Node& node, bool jsonata);
  void ReadTask(State& state, Fields& fields, const Node& node);
  void ReadPass(State& state, Fields& fields);
  void ReadChoice(State& state, Fields& fields, const Node& node);
  void ReadWait(State& state, Fields& fields, const Node& node);
  void ReadFail(State& state, Fields& fields);
  void ReadParallel(State& state, Fields& fields, const Node& node);
  void ReadMap(State& state, Fields& fields, const Node& node);
  void ReadItemProcessor(State& state, Fields& fields, const Node& node);
  void ReadProcessorConfig(State& state, const Node& node);
  void ReadItems(State& state, Fields& fields);
  void ReadItemReader(State& state, const Node& node);
  void ReadItemBatcher(State& state, const Node& node);
  void ReadResultWriter(State& state, const Node& node);

  void ReadNext(State& state, Fields& fields, const Node& node);
  void ReadInputAndOutput(State& state, Fields& fields, bool has_input);
  void ReadResult(State& state, Fields& fields);
  void ReadRetry(State& state, Fields& fields);
  void ReadCatch(State& state, Fields& fields);
  std::vector<std::string> ReadErrorEquals(Fields& fields, const Node& node, bool last);
  Condition ReadCondition(const Node& node, Fields* outer, bool top);
  PathField ReadPathField(Fields& fields, std::string_view name);
  ResultPathField ReadResultPath(Fields& fields);
  // `name` or, in JSONPath, `name` + "Path". At most one of the two.
  Computed ReadComputed(const State& state, Fields& fields, const std::string& name,
                        Json::Type type, double least, double most);
  std::optional<Template> ReadTemplate(const State& state, Fields& fields, const std::string& name);
  std::optional<Template> ReadAssign(const State& state, Fields& fields);
  void CheckResource(const Node& node);
  void CheckGraph(const Node& states_node, const Machine& machine, const Node& start,
                  const std::string& where);

  Source& source_;
  JsonataEngine* jsonata_;
  Definition definition_;
  bool jsonata_machine_ = false;
  std::set<std::string> names_;  // of all states: unique within the definition
  int depth_ = 0;
};

}  // namespace muster::states
