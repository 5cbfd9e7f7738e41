#include "matrix/content.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace muster::testing {
namespace {

constexpr int kBooks = 400;
constexpr int kLines = 60;

// Whether the version has it.
bool Tries(const OpenSearchServer& server, const std::string& method, const std::string& target,
           const std::string& body = "") {
  try {
    server.Call(method, target, body);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void Add(const OpenSearchServer& server, const std::string& target, const std::string& lines) {
  const std::string answer =
      server.Call("POST", target + "/_bulk?refresh=true&filter_path=errors", lines);
  if (answer != R"({"errors":false})") throw std::runtime_error(target + ": " + answer);
}

std::string Book(int i) {
  return R"({"title":"Book )" + std::to_string(i) + R"(","price":)" + std::to_string(i) +
         R"(.50,"tags":["x","t)" + std::to_string(i % 7) +
         R"("],"at":"2020-01-01T00:00:00Z","authors":[{"name":"A"},{"name":"B)" +
         std::to_string(i) + "\"}]}";
}

}  // namespace

MatrixContent::MatrixContent(OpenSearchServer& server, std::string prefix)
    : server_(server), prefix_(std::move(prefix)) {
  AddBooks();
  AddOldTemplate();
  has_streams_ = AddStream();
  has_policies_ = AddPolicy();
  has_frozen_ = AddFrozen();
}

MatrixContent::~MatrixContent() { Remove(server_, prefix_); }

bool MatrixContent::IsTyped() const {
  const std::string& name = server_.distribution();
  return name.starts_with("elasticsearch-6") || name.starts_with("elasticsearch-5");
}

std::string MatrixContent::Mappings() const {
  const std::string fields = R"({"properties":{
    "title":{"type":"text","fields":{"raw":{"type":"keyword"}}},"tags":{"type":"keyword"},
    "price":{"type":"double"},"at":{"type":"date"},
    "authors":{"type":"nested","properties":{"name":{"type":"keyword"}}}}})";
  return IsTyped() ? R"({"book":)" + fields + "}" : fields;
}

// Some with a routing; some were changed or deleted since.
void MatrixContent::AddBooks() const {
  const std::string index = "/" + prefix_ + "-books";
  server_.Call("PUT", index,
               R"({"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":)" +
                   Mappings() + R"(,"aliases":{")" + prefix_ +
                   R"(-some":{"filter":{"term":{"tags":"t1"}}},")" + prefix_ +
                   R"(-write":{"is_write_index":true}}})");
  std::string lines;
  std::string changes;
  for (int i = 0; i < kBooks; ++i) {
    const std::string id = R"({"_id":")" + std::to_string(i) + '"' +
                           (i % 3 == 0 ? R"(,"routing":"r)" + std::to_string(i % 5) + '"' : "") +
                           "}}\n";
    lines += R"({"index":)" + id + Book(i) + "\n";
    if (i % 10 == 1) changes += R"({"delete":)" + id;
    if (i % 10 == 2) changes += R"({"index":)" + id + Book(i + 1'000) + "\n";
  }
  const std::string target = index + (IsTyped() ? "/book" : "");
  Add(server_, target, lines);
  Add(server_, target, changes);
}

void MatrixContent::AddOldTemplate() const {
  server_.Call("PUT", "/_template/" + prefix_ + "-old",
               R"({"index_patterns":[")" + prefix_ +
                   R"(-boo*"],"order":3,"settings":{"number_of_replicas":0},"mappings":)" +
                   Mappings() + "}");
}

bool MatrixContent::AddStream() const {
  const std::string stream = prefix_ + "-logs";
  if (!Tries(server_, "PUT", "/_component_template/" + prefix_ + "-part",
             R"({"template":{"mappings":{"properties":{"level":{"type":"keyword"}}}}})") ||
      !Tries(server_, "PUT", "/_index_template/" + prefix_ + "-new",
             R"({"index_patterns":[")" + stream + R"("],"priority":700,"composed_of":[")" +
                 prefix_ + R"(-part"],"data_stream":{},"template":{"settings":{)" +
                 R"("number_of_shards":1,"number_of_replicas":0}}})") ||
      !Tries(server_, "PUT", "/_data_stream/" + stream)) {
    Tries(server_, "DELETE", "/_index_template/" + prefix_ + "-new");
    Tries(server_, "DELETE", "/_component_template/" + prefix_ + "-part");
    return false;
  }
  for (const int first : {0, kLines}) {
    if (first > 0) server_.Call("POST", "/" + stream + "/_rollover");
    std::string lines;
    for (int i = first; i < first + kLines; ++i) {
      lines += R"({"create":{"_id":"line-)" + std::to_string(i) +
               "\"}}\n{\"@timestamp\":\"2024-01-01T00:00:00.123456Z\",\"level\":\"info\",\"n\":" +
               std::to_string(i) + "}\n";
    }
    Add(server_, "/" + stream, lines);
  }
  return true;
}

bool MatrixContent::AddPolicy() const {
  const std::string policy = prefix_ + "-policy";
  if (!Tries(server_, "PUT", "/_ilm/policy/" + policy,
             R"({"policy":{"phases":{"delete":{"min_age":"900d","actions":{"delete":{}}}}}})")) {
    return false;
  }
  server_.Call("PUT", "/" + prefix_ + "-aged",
               R"({"settings":{"number_of_shards":1,"number_of_replicas":0,)"
               R"("index.lifecycle.name":")" +
                   policy + "\"}}");
  return true;
}

bool MatrixContent::AddFrozen() const {
  const std::string index = "/" + prefix_ + "-ice";
  server_.Call("PUT", index, R"({"settings":{"number_of_shards":1,"number_of_replicas":0}})");
  Add(server_, index + (IsTyped() ? "/book" : ""),
      "{\"index\":{\"_id\":\"1\"}}\n{\"cold\":true}\n{\"index\":{\"_id\":\"2\"}}\n{\"cold\":false}"
      "\n");
  return Tries(server_, "POST", index + "/_freeze");
}

std::string MatrixContent::TakeSnapshot() const {
  const std::string folder = server_.RepositoryFolder() + "/" + prefix_;
  server_.Call("PUT", "/_snapshot/" + prefix_,
               R"({"type":"fs","settings":{"location":")" + folder + R"("}})");
  server_.Call("PUT", "/_snapshot/" + prefix_ + "/all?wait_for_completion=true",
               R"({"indices":")" + prefix_ + R"(-*","include_global_state":true})");
  server_.Call("DELETE", "/_snapshot/" + prefix_);
  return folder;
}

void MatrixContent::Remove(const OpenSearchServer& server, const std::string& prefix) {
  for (const char* kind :
       {"/_data_stream/", "/_index_template/", "/_component_template/", "/_template/", "/"}) {
    Tries(server, "DELETE", kind + prefix + "-*");
  }
  Tries(server, "DELETE", "/_ilm/policy/" + prefix + "-policy");
}

}  // namespace muster::testing
