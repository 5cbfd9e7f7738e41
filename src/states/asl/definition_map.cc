#include "states/asl/definition_reader.h"

namespace muster::states {

void DefinitionReader::ReadMap(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  if (!state.jsonata) {
    state.result_selector = ReadTemplate(state, fields, "ResultSelector");
    state.result_path = ReadResultPath(fields);
  }
  state.assign = ReadAssign(state, fields);
  ReadRetry(state, fields);
  ReadCatch(state, fields);
  ReadItemProcessor(state, fields, node);
  ReadItems(state, fields);
  state.item_selector = ReadTemplate(state, fields, "ItemSelector");
  if (!state.jsonata && fields.Has("Parameters")) {
    if (state.item_selector)
      source_.Add(fields.Find("Parameters")->offset,
                  "\"Parameters\" is the old name of \"ItemSelector\": give one of them");
    state.item_selector = ReadTemplate(state, fields, "Parameters");
  }
  state.max_concurrency =
      ReadComputed(state, fields, "MaxConcurrency", Json::Type::kInteger, 0, kMaxSeconds);
  state.tolerated_count =
      ReadComputed(state, fields, "ToleratedFailureCount", Json::Type::kInteger, 0, kMaxSeconds);
  state.tolerated_percentage =
      ReadComputed(state, fields, "ToleratedFailurePercentage", Json::Type::kFloat, 0, 100);
  if (const Node* label = fields.String("Label")) {
    state.label = label->text();
    if (CountChars(label->text()) > 40)
      source_.Add(label->offset, "\"Label\" has at most 40 characters");
  }
  if (const Node* reader = fields.Object("ItemReader")) ReadItemReader(state, *reader);
  if (const Node* batcher = fields.Object("ItemBatcher")) ReadItemBatcher(state, *batcher);
  if (const Node* writer = fields.Object("ResultWriter")) ReadResultWriter(state, *writer);
}

void DefinitionReader::ReadItemProcessor(State& state, Fields& fields, const Node& node) {
  const Node* processor = fields.Object("ItemProcessor");
  if (const Node* iterator = fields.Object("Iterator")) {
    if (processor != nullptr)
      source_.Add(iterator->offset,
                  "\"Iterator\" is the old name of \"ItemProcessor\": give one of them");
    processor = iterator;
  }
  if (!fields.Has("ItemProcessor") && !fields.Has("Iterator")) {
    source_.Add(node.offset, "the Map \"" + state.name + "\" has no \"ItemProcessor\"");
  }
  if (processor == nullptr) return;
  Fields processor_fields(*processor, source_);
  if (const Node* config = processor_fields.Object("ProcessorConfig"))
    ReadProcessorConfig(state, *config);
  state.branches.push_back(
      ReadMachine(*processor, false, state.jsonata && jsonata_machine_, processor_fields));
  processor_fields.RejectOthers("an item processor", "");
}

void DefinitionReader::ReadProcessorConfig(State& state, const Node& node) {
  Fields fields(node, source_);
  if (const Node* mode = fields.String("Mode")) {
    state.distributed = mode->text() == "DISTRIBUTED";
    if (!state.distributed && mode->text() != "INLINE")
      source_.Add(mode->offset, "\"Mode\" is \"INLINE\" or \"DISTRIBUTED\"");
  }
  if (const Node* type = fields.String("ExecutionType");
      type != nullptr && type->text() != "STANDARD" && type->text() != "EXPRESS") {
    source_.Add(type->offset, "\"ExecutionType\" is \"STANDARD\" or \"EXPRESS\"");
  }
  fields.RejectOthers("\"ProcessorConfig\"", "");
}

void DefinitionReader::ReadItems(State& state, Fields& fields) {
  if (!state.jsonata) {
    const Node* items = fields.String("ItemsPath");
    if (items == nullptr) return;
    state.items.field = "ItemsPath";
    auto query = Query::ParsePath(items->text());
    if (query)
      state.items.query = *std::move(query);
    else
      source_.Add(items->offset, query.error().message);
    return;
  }
  const Node* items = fields.Find("Items");
  if (items == nullptr) return;
  state.items.field = "Items";
  if (items->is_string()) {
    state.items.query = ReadJsonataText(*items, source_, jsonata_);
  } else if (items->is_array()) {
    state.items_template = Template::ReadJsonata(*items, "Items", source_, jsonata_);
  } else {
    source_.Add(items->offset, "\"Items\" must be an array or JSONata");
  }
}

void DefinitionReader::ReadItemReader(State& state, const Node& node) {
  Fields fields(node, source_);
  ItemReader reader;
  if (const Node* resource = fields.String("Resource")) reader.resource = resource->text();
  if (!fields.Has("Resource")) source_.Add(node.offset, "\"ItemReader\" has no \"Resource\"");
  reader.parameters = ReadTemplate(state, fields, state.jsonata ? "Arguments" : "Parameters");
  if (const Node* config = fields.Object("ReaderConfig")) {
    Fields config_fields(*config, source_);
    if (const Node* type = config_fields.String("InputType")) {
      const auto known = kInputTypes.Find(type->text());
      if (!known)
        source_.Add(type->offset, "\"InputType\" is \"CSV\", \"JSON\", \"JSONL\" or \"MANIFEST\"");
      reader.input_type = known.value_or(InputType::kObjects);
    }
    config_fields.Find("ManifestType");
    config_fields.Find("Transformation");
    if (const Node* delimiter = config_fields.String("CSVDelimiter")) {
      static const std::map<std::string, std::string> kDelimiters = {
          {"COMMA", ","}, {"PIPE", "|"}, {"SEMICOLON", ";"}, {"SPACE", " "}, {"TAB", "\t"}};
      const auto found = kDelimiters.find(delimiter->text());
      if (found == kDelimiters.end())
        source_.Add(delimiter->offset, "\"CSVDelimiter\" is COMMA, PIPE, SEMICOLON, SPACE or TAB");
      else
        reader.csv_delimiter = found->second;
    }
    const Node* location = config_fields.String("CSVHeaderLocation");
    const Node* headers = config_fields.Array("CSVHeaders");
    if (location != nullptr && location->text() == "GIVEN" && headers == nullptr) {
      source_.Add(location->offset, "\"CSVHeaderLocation\" GIVEN needs \"CSVHeaders\"");
    }
    if (headers != nullptr) {
      for (const Node& header : headers->items) {
        if (!header.is_string())
          source_.Add(header.offset, "a header is a string");
        else
          reader.csv_headers.push_back(header.text());
      }
    }
    reader.max_items =
        ReadComputed(state, config_fields, "MaxItems", Json::Type::kInteger, 1, 100'000'000);
    config_fields.RejectOthers("\"ReaderConfig\"", "");
  }
  fields.RejectOthers("\"ItemReader\"", "");
  state.item_reader = std::move(reader);
}

void DefinitionReader::ReadItemBatcher(State& state, const Node& node) {
  Fields fields(node, source_);
  ItemBatcher batcher;
  batcher.batch_input = ReadTemplate(state, fields, "BatchInput");
  batcher.max_items =
      ReadComputed(state, fields, "MaxItemsPerBatch", Json::Type::kInteger, 1, 100'000'000);
  batcher.max_bytes =
      ReadComputed(state, fields, "MaxInputBytesPerBatch", Json::Type::kInteger, 1, 262'144);
  if (!batcher.max_items && !batcher.max_bytes) {
    source_.Add(node.offset,
                "\"ItemBatcher\" needs \"MaxItemsPerBatch\" or \"MaxInputBytesPerBatch\"");
  }
  fields.RejectOthers("\"ItemBatcher\"", "");
  state.item_batcher = std::move(batcher);
}

void DefinitionReader::ReadResultWriter(State& state, const Node& node) {
  Fields fields(node, source_);
  ResultWriter writer;
  if (const Node* resource = fields.String("Resource")) writer.resource = resource->text();
  if (writer.resource.empty()) writer.transformation = Transformation::kCompact;
  writer.parameters = ReadTemplate(state, fields, state.jsonata ? "Arguments" : "Parameters");
  if (const Node* config = fields.Object("WriterConfig")) {
    Fields config_fields(*config, source_);
    if (const Node* type = config_fields.String("OutputType")) {
      const auto known = kOutputTypes.Find(type->text());
      if (!known) source_.Add(type->offset, "\"OutputType\" is \"JSON\" or \"JSONL\"");
      writer.output_type = known.value_or(OutputType::kJson);
    }
    if (const Node* transformation = config_fields.String("Transformation")) {
      const auto known = kTransformations.Find(transformation->text());
      if (!known)
        source_.Add(transformation->offset,
                    "\"Transformation\" is \"NONE\", \"FLATTEN\" or \"COMPACT\"");
      writer.transformation = known.value_or(writer.transformation);
    }
    config_fields.RejectOthers("\"WriterConfig\"", "");
  }
  fields.RejectOthers("\"ResultWriter\"", "");
  state.result_writer = std::move(writer);
}

}  // namespace muster::states
