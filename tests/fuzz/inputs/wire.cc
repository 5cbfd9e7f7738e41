#include <array>

#include "change/row_events.h"
#include "core/metrics.h"
#include "fuzz/inputs/inputs.h"
#include "net/opensearch.h"
#include "serve/api.h"
#include "serve/route.h"
#include "serve/service.h"
#include "store/dynamodb/dynamodb_items.h"
#include "store/opensearch/opensearch_records.h"
#include "task/aws/aws_protocol.h"
#include "task/aws/aws_xml.h"

namespace muster::fuzz {
namespace {

constexpr std::string_view kToken = "an operator's token";

// All of `serve` except its sockets.
class Served {
 public:
  Served()
      : service_(*serve::Site::Open(Options(), RealEnv()), {.audit_log = FileWith("", ".audit")},
                 metrics_),
        api_(service_, metrics_, RealEnv()) {
    serve::Tokens tokens;
    tokens.for_operator = kToken;
    tokens.for_viewer = "a viewer's token";
    api_.Open(serve::Access(tokens, {"localhost"}, 80, false, FileWith("", ".ended"), RealEnv()));
  }

  void Handle(const serve::WebRequest& request) {
    if (!api_.Refuse(request)) static_cast<void>(api_.Handle(request));
  }

 private:
  static serve::SiteOptions Options() {
    serve::SiteOptions options;
    options.stores = {"memory:"};
    options.dead_letters = FileWith("", ".letters");
    return options;
  }

  Metrics metrics_;
  serve::Service service_;
  serve::Api api_;
};

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// "METHOD PATH?name=value&…", headers, an empty line, the body.
serve::WebRequest RequestFrom(std::string_view bytes) {
  serve::WebRequest request;
  std::string_view line = TakeLine(bytes);
  const size_t space = std::min(line.find(' '), line.size());
  request.method = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  const size_t mark = std::min(line.find('?'), line.size());
  request.path = line.substr(0, mark);
  line.remove_prefix(std::min(mark + 1, line.size()));
  while (!line.empty()) {
    const size_t end = std::min(line.find('&'), line.size());
    const std::string_view pair = line.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    request.query.emplace_back(pair.substr(0, equals),
                               pair.substr(std::min(equals + 1, pair.size())));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  for (line = TakeLine(bytes); !line.empty(); line = TakeLine(bytes)) {
    const size_t colon = std::min(line.find(": "), line.size());
    request.headers.emplace_back(line.substr(0, colon),
                                 line.substr(std::min(colon + 2, line.size())));
  }
  request.body = bytes;
  request.peer = "127.0.0.1";
  return request;
}

void Serve(std::string_view bytes) {
  static Served served;
  serve::WebRequest request = RequestFrom(bytes);
  served.Handle(request);
  // And again as an operator.
  request.headers.emplace_back("Host", "localhost");
  request.headers.emplace_back("Authorization", "Bearer " + std::string(kToken));
  served.Handle(request);
  static_cast<void>(serve::MatchPath("/stores/{}/work/{}", request.path));
}

void AnswerAws(std::string_view bytes) {
  static constexpr std::array<std::string_view, 5> kServices{"dynamodb", "sns", "glue", "appflow",
                                                             "sqs"};
  const task::AwsService* service =
      task::FindAwsService(kServices[TakeChoice(bytes, kServices.size())]);
  net::HttpResponse response;
  response.status = 200;
  response.body = bytes;
  if (service != nullptr) {
    for (const auto times : {task::AwsTimes::kText, task::AwsTimes::kMilliseconds}) {
      static_cast<void>(task::DecodeAwsAnswer(*service, "Publish", response, times));
    }
  }
  response.status = 400;
  static_cast<void>(task::DecodeAwsError(response));
  static_cast<void>(task::RequestIdOf(response));
}

void ReadXml(std::string_view bytes) {
  const auto xml = task::ParseAwsXml(bytes);
  if (xml) static_cast<void>(ToJsonText(*xml));
}

void AnswerOpenSearch(std::string_view bytes) {
  static const net::OpenSearchClient kClient({}, RealEnv());
  const net::OpenSearchCall call{.method = "POST", .path = "/_bulk"};
  for (const int status : {400, 403, 404, 409, 429, 503}) {
    static_cast<void>(kClient.ErrorOf(call, {.status = status, .body = std::string(bytes)}));
  }
  const Json json = Json::parse(bytes, nullptr, false);
  if (!json.is_discarded()) static_cast<void>(store::RecordOf(json));
}

void AnswerDynamoDb(std::string_view bytes) {
  const Json json = Json::parse(bytes, nullptr, false);
  if (!json.is_discarded()) static_cast<void>(store::DynamoDbRecordOf(json, "work"));
}

// Messages, each after its length in two bytes, as one session receives them.
void Follow(std::string_view bytes) {
  change::RowEvents rows("fuzz", {change::Outbox{.table = "outbox"}});
  std::vector<events::StreamAppend> appends;
  change::ChangePlace place;
  while (bytes.size() > 2) {
    const size_t length = static_cast<uint8_t>(bytes[0]) * 256U + static_cast<uint8_t>(bytes[1]);
    const auto message = sql::DecodePgOutput(bytes.substr(2, length));
    bytes.remove_prefix(std::min(bytes.size(), length + 2));
    if (!message) continue;
    ++place.number;
    if (const auto* relation = std::get_if<sql::PgRelation>(&*message)) {
      static_cast<void>(rows.Learn(*relation, {"id"}));
    } else if (const auto* change = std::get_if<sql::PgChange>(&*message)) {
      static_cast<void>(rows.Add(*change, place, appends));
    } else if (const auto* truncate = std::get_if<sql::PgTruncate>(&*message)) {
      static_cast<void>(rows.Add(*truncate, place, appends));
    }
  }
}

constexpr Input kInputs[] = {{"serve", Serve},
                             {"aws", AnswerAws},
                             {"aws_xml", ReadXml},
                             {"opensearch", AnswerOpenSearch},
                             {"dynamodb", AnswerDynamoDb},
                             {"pgoutput", Follow}};

}  // namespace

std::span<const Input> WireInputs() { return kInputs; }

}  // namespace muster::fuzz
