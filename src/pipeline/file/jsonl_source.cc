#include "pipeline/file/jsonl_source.h"

#include "core/json_scan.h"
#include "pipeline/file/file_source.h"
#include "pipeline/file/record_reader.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/json/json_check.h"
#include "pipeline/json/json_path.h"

namespace muster::pipeline {
namespace {

static_assert(RecordReader::kPadding >= JsonChecker::kPadding);

// Smaller parts are not worth splitting.
constexpr uint64_t kLeastSplitBytes = uint64_t{128} << 10;

struct JsonlFields {
  std::optional<JsonPath> id;
  std::optional<JsonPath> routing;
};

bool IsBlank(std::string_view line) { return SkipJsonSpace(line, 0) == line.size(); }

class JsonlReader final : public Reader {
 public:
  JsonlReader(const FileEntry& file, const FileRange& range, RecordReader records,
              const JsonlFields& fields)
      : path_(file.path),
        splittable_(file.compression == Compression::kNone),
        end_(range.end),
        size_(file.size),
        records_(std::move(records)),
        fields_(fields),
        counts_lines_(range.begin == 0) {}

  // In the middle of a file: a line in progress belongs to the previous part.
  Status SkipPartialLine() {
    MUSTER_TRY(records_.Next());
    return {};
  }

  Result<std::optional<Document>> Next() override {
    for (;;) {
      if (records_.offset() >= end_) return std::nullopt;
      MUSTER_ASSIGN(auto record, records_.Next());
      if (!record) return std::nullopt;
      ++line_;
      if (record->offset == 0) record->text = WithoutBom(record->text);
      if (!IsBlank(record->text)) return DocumentOf(*record);
    }
  }

  // The second half starts with the first line that begins at or after the middle.
  Result<std::optional<std::string>> Split() override {
    const uint64_t at = records_.offset();
    const uint64_t end = std::min(end_, size_);
    if (!splittable_ || end < at + kLeastSplitBytes) return std::nullopt;
    end_ = at + (end - at) / 2;
    return FilePosition(end_);
  }

 private:
  Document DocumentOf(const RecordReader::Record& record) {
    position_ = FilePosition(records_.offset());
    Document document{
        .id = {}, .routing = {}, .body = record.text, .position = position_, .defect = {}};
    if (record.too_long)
      return WithDefect(document, record, "the line is longer than max_document_bytes");
    if (const Status checked = checker_.CheckPadded(record.text); !checked) {
      return WithDefect(document, record, checked.error().message);
    }
    const std::string_view object = record.text.substr(SkipJsonSpace(record.text, 0));
    if (fields_.id && !Take(*fields_.id, object, id_)) {
      return WithDefect(document, record, "no id in the field '" + fields_.id->text() + "'");
    }
    if (fields_.routing && !Take(*fields_.routing, object, routing_)) routing_.clear();
    document.id = id_;
    document.routing = routing_;
    return document;
  }

  static bool Take(const JsonPath& path, std::string_view object, std::string& text) {
    const auto value = path.Find(object);
    auto scalar = value ? JsonScalarText(*value) : std::nullopt;
    if (!scalar || scalar->empty()) return false;
    text = *std::move(scalar);
    return true;
  }

  Document WithDefect(Document document, const RecordReader::Record& record,
                      std::string_view reason) {
    defect_ =
        FilePlace(path_, counts_lines_ ? line_ : 0, record.offset) + ": " + std::string(reason);
    document.defect = defect_;
    return document;
  }

  const std::string path_;
  const bool splittable_;
  uint64_t end_;
  const uint64_t size_;
  RecordReader records_;
  const JsonlFields& fields_;
  const bool counts_lines_;
  JsonChecker checker_;
  uint64_t line_ = 0;
  std::string position_;
  std::string id_;
  std::string routing_;
  std::string defect_;
};

class JsonlSource final : public FileSource {
 public:
  JsonlSource(FileSourceOptions options, JsonlFields fields)
      : FileSource(std::move(options)), fields_(std::move(fields)) {}

 protected:
  Result<std::string> Metadata(const FileCollection&) override { return "{}"; }

  // Any byte will do: each partition finds its own first line.
  Result<std::vector<uint64_t>> Cuts(const FileEntry& file, uint64_t partition_bytes) override {
    std::vector<uint64_t> cuts;
    for (uint64_t at = 0; at < file.size; at += partition_bytes) cuts.push_back(at);
    return cuts;
  }

  Result<std::unique_ptr<Reader>> ReadRange(const FileEntry& file,
                                            const FileRange& range) override {
    // One byte earlier, since a line begins after a line end.
    const uint64_t from = range.begin == 0 ? 0 : range.begin - 1;
    MUSTER_ASSIGN(auto stream, OpenByteStream(file.path, file.compression, from));
    auto reader = std::make_unique<JsonlReader>(
        file, range, RecordReader(std::move(stream), from, options().max_document_bytes), fields_);
    if (range.begin > 0) MUSTER_TRY(reader->SkipPartialLine());
    return reader;
  }

 private:
  const JsonlFields fields_;
};

Result<std::optional<JsonPath>> PathParam(const Url& url, std::string_view name) {
  const auto text = url.Param(name);
  if (!text) return std::nullopt;
  return JsonPath::Parse(*text);
}

}  // namespace

Result<std::unique_ptr<Source>> OpenJsonlSource(const Url& url, Env&) {
  MUSTER_TRY(CheckParams(url, {"id", "routing", "partition_bytes", "max_document_bytes"}));
  MUSTER_ASSIGN(auto options, FileSourceOptions::From(url, {".jsonl", ".ndjson", ".json"}));
  JsonlFields fields;
  MUSTER_ASSIGN(fields.id, PathParam(url, "id"));
  MUSTER_ASSIGN(fields.routing, PathParam(url, "routing"));
  return std::make_unique<JsonlSource>(std::move(options), std::move(fields));
}

}  // namespace muster::pipeline
