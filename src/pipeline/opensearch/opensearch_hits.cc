#include "pipeline/opensearch/opensearch_hits.h"

#include <simdjson.h>

#include <charconv>
#include <cstdio>

#include "pipeline/opensearch/opensearch_requests.h"

namespace muster::pipeline {

namespace ondemand = simdjson::ondemand;

std::string PositionOf(int64_t seq_no) {
  char text[24];
  std::snprintf(text, sizeof text, "%019lld", static_cast<long long>(seq_no));
  return text;
}

Result<int64_t> SeqNoOf(const std::string& position, int64_t if_empty) {
  if (position.empty()) return if_empty;
  int64_t number = 0;
  const char* const end = position.data() + position.size();
  const auto [stop, problem] = std::from_chars(position.data(), end, number);
  if (problem != std::errc() || stop != end || number < 0) {
    return Error{Code::kInvalid, "'" + position + "' is not a position of an OpenSearch index",
                 "check that the source is the one the run was started with"};
  }
  return number;
}

struct Hits::Parser {
  static void Add(Hits& hits, ondemand::object hit) {
    Document document;
    bool has_source = false;
    std::string_view position;
    for (ondemand::field field : hit) {
      const std::string_view name = field.unescaped_key();
      if (name == "_id") {
        document.id = hits.page_.arena.Copy(field.value().get_string());
      } else if (name == "_routing") {
        document.routing = hits.page_.arena.Copy(field.value().get_string());
      } else if (name == "_source") {
        document.body = field.value().get_object().value().raw_json();
        has_source = true;
      } else if (name == "sort") {
        position = Position(hits, field.value().get_array());
      }
    }
    if (!has_source) {
      document.body = "{}";
      document.defect = "the index has no _source for it";
    }
    document.position = position;
    hits.page_.documents.push_back(document);
  }

  static std::string_view Position(Hits& hits, ondemand::array sort) {
    for (ondemand::value value : sort) {
      if (value.type() == ondemand::json_type::string) {
        hits.last_text_ = std::string_view(value.get_string());
        return hits.page_.arena.Copy(hits.last_text_);
      }
      hits.last_ = value.get_int64();
    }
    return hits.page_.arena.Copy(PositionOf(hits.last_ + 1));
  }

  ondemand::parser parser;
};

Hits::Hits(const net::OpenSearchClient& client)
    : client_(client), parser_(std::make_unique<Parser>()) {}

Hits::~Hits() = default;

void Hits::Drop() {
  page_.Clear();
  at_ = 0;
  std::string().swap(body_);
}

Status Hits::Read(std::string answer) {
  Drop();
  body_ = std::move(answer);
  const size_t size = body_.size();
  body_.resize(size + simdjson::SIMDJSON_PADDING);
  try {
    ondemand::document document = parser_->parser.iterate(body_.data(), size, body_.size());
    for (ondemand::field field : document.get_object()) {
      const std::string_view name = field.unescaped_key();
      if (name == "_scroll_id") {
        scroll_ = std::string_view(field.value().get_string());
      } else if (name == "_shards") {
        // A partial shard failure must not pass for a complete result.
        if (field.value().get_object()["failed"].get_int64().value() > 0) {
          return Error{Code::kUnavailable, client_.Place() + " could not search the whole shard",
                       "see GET /_cluster/health: all primary shards must be active"};
        }
      } else if (name == "hits") {
        for (ondemand::object hit : field.value().get_object()["hits"].get_array()) {
          Parser::Add(*this, hit);
        }
      }
    }
  } catch (const simdjson::simdjson_error& problem) {
    return Unexpected(client_, std::string("an unreadable response: ") + problem.what());
  }
  return {};
}

}  // namespace muster::pipeline
