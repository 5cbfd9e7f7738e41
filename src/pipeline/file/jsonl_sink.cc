#include "pipeline/file/jsonl_sink.h"

#include <algorithm>

#include "core/json.h"
#include "core/json_scan.h"
#include "pipeline/file/file_sink.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/json/json_text.h"

namespace muster::pipeline {
namespace {

// Fields that store what is not in a document's body; empty: not stored.
struct JsonlKept {
  std::string id;
  std::string routing;
};

class JsonlEncoder final : public FileEncoder {
 public:
  explicit JsonlEncoder(const JsonlKept& kept) : kept_(kept) {}

  Result<std::string> Header(const Batch*) override { return std::string(); }

  Status Encode(const Document& document, std::string& bytes) override {
    const size_t start = SkipJsonSpace(document.body, 0);
    std::string_view body = document.body.substr(start);
    const bool has_id = !kept_.id.empty() && !document.id.empty();
    const bool has_routing = !kept_.routing.empty() && !document.routing.empty();
    if (has_id || has_routing) {
      bytes += '{';
      body.remove_prefix(1);
      if (has_id) MUSTER_TRY(AddField(kept_.id, document.id, document.body.substr(start), bytes));
      if (has_routing) {
        MUSTER_TRY(AddField(kept_.routing, document.routing, document.body.substr(start), bytes));
      }
      const bool is_empty = body.substr(SkipJsonSpace(body, 0)).starts_with('}');
      if (is_empty && bytes.ends_with(',')) bytes.pop_back();
    }
    const size_t copied = bytes.size();
    bytes += body;
    // Line ends occur only between tokens, where a space is equivalent.
    if (body.find('\n') != std::string_view::npos || body.find('\r') != std::string_view::npos) {
      std::replace_if(
          bytes.begin() + static_cast<std::ptrdiff_t>(copied), bytes.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
    }
    bytes += '\n';
    return {};
  }

 private:
  // Prepends a field unless it already exists.
  static Status AddField(const std::string& name, std::string_view text, std::string_view object,
                         std::string& bytes) {
    JsonMembers members(object);
    while (const auto member = members.Next()) {
      if (!JsonKeyIs(member->key, name)) continue;
      if (JsonScalarText(member->value) == text) return {};
      return Error{Code::kInvalid, "the field '" + name + "' already has another value"};
    }
    AppendJsonString(bytes, name);
    bytes += ':';
    AppendJsonString(bytes, text);
    bytes += ',';
    return {};
  }

  const JsonlKept& kept_;
};

class JsonlFormat final : public FileFormat {
 public:
  explicit JsonlFormat(JsonlKept kept) : kept_(std::move(kept)) {}

  const std::vector<std::string_view>& Endings() const override {
    static const std::vector<std::string_view> kEndings = {".jsonl", ".ndjson", ".json"};
    return kEndings;
  }
  Status Prepare(const Collection&, const std::string&) override { return {}; }
  Result<std::unique_ptr<FileEncoder>> NewEncoder(const std::string&, FileSinkState&) override {
    return std::make_unique<JsonlEncoder>(kept_);
  }

 private:
  const JsonlKept kept_;
};

}  // namespace

Result<std::unique_ptr<Sink>> OpenJsonlSink(const Url& url, Env& env) {
  MUSTER_TRY(CheckParams(url, {"compress", "id", "routing"}));
  JsonlKept kept{.id = url.Param("id").value_or(""), .routing = url.Param("routing").value_or("")};
  return FileSink::Open(url, std::make_unique<JsonlFormat>(std::move(kept)), env);
}

}  // namespace muster::pipeline
