#include "store/dynamodb/dynamodb_client.h"

#include <algorithm>
#include <array>

#include "core/backoff.h"
#include "core/secrets.h"
#include "net/sigv4.h"
#include "store/dynamodb/dynamodb_items.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectTimeout{3'000};
constexpr Backoff::Pauses kPauses{.first = milliseconds(25), .longest = milliseconds(1'000)};
constexpr milliseconds kTick{1'000};  // of a Date header

using Names = std::initializer_list<std::string_view>;

bool IsOneOf(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsRead(std::string_view operation) {
  return operation == "GetItem" || operation == "Query" || operation.starts_with("Describe");
}

// "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"
std::string ShortName(std::string_view type) {
  return std::string(type.substr(type.rfind('#') + 1));
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

DynamoDbAnswer Read(const net::HttpResponse& response) {
  DynamoDbAnswer answer;
  auto body = ParseJson(response.body, "the answer");
  if (body && body->is_object()) answer.body = *std::move(body);
  if (response.status == 200 && answer.body.is_object()) return answer;
  if (answer.body.is_object()) {
    answer.error = ShortName(TextOf(answer.body, "__type"));
    answer.message = TextOf(answer.body, "message");
    if (answer.message.empty()) answer.message = TextOf(answer.body, "Message");
  }
  // Not from DynamoDB: a proxy, or something else listening there.
  if (answer.error.empty()) answer.error = "HTTP status " + std::to_string(response.status);
  return answer;
}

// A cancelled transaction gives a reason per change: one that only lost a conflict may be retried.
bool LostConflict(const DynamoDbAnswer& answer) {
  const auto reasons = answer.body.find("CancellationReasons");
  if (reasons == answer.body.end() || !reasons->is_array()) return false;
  return std::all_of(reasons->begin(), reasons->end(), [](const Json& reason) {
    return IsOneOf(TextOf(reason, "Code"), {"None", "TransactionConflict", "ThrottlingError",
                                            "ProvisionedThroughputExceeded"});
  });
}

bool IsAboutTime(const DynamoDbAnswer& answer) {
  return answer.error == "InvalidSignatureException" &&
         (answer.message.find("expired") != std::string::npos ||
          answer.message.find("not yet current") != std::string::npos);
}

}  // namespace

bool DynamoDbPatience::Pause() {
  const auto pause = env_.Jitter(kPauses.After(++pauses_));
  if (env_.MonoNow() + pause >= end_) return false;
  return env_.Sleep(pause, {});
}

milliseconds DynamoDbPatience::Left() const {
  return std::chrono::floor<milliseconds>(end_ - env_.MonoNow());
}

DynamoDbClient::DynamoDbClient(DynamoDbPlace place, Env& env, const DynamoDbLimits& limits)
    : place_(std::move(place)),
      limits_(limits),
      env_(env),
      http_(net::HttpOptions{.ca_file = place_.ca_file}),
      credentials_(env) {}

Result<Json> DynamoDbClient::Fetch(std::string_view operation, const Json& request) {
  MUSTER_ASSIGN(DynamoDbAnswer answer, Call(operation, request));
  if (!answer.ok()) return ErrorOf(operation, answer);
  return std::move(answer.body);
}

Result<Json> DynamoDbClient::GetItem(Json request) {
  request["ConsistentRead"] = true;
  MUSTER_ASSIGN(const Json body, Fetch("GetItem", request));
  return DynamoDbItemIn(body);
}

Result<DynamoDbAnswer> DynamoDbClient::Call(std::string_view operation, const Json& request) {
  DynamoDbPatience patience = NewPatience();
  return Call(operation, request, patience);
}

Result<DynamoDbAnswer> DynamoDbClient::Call(std::string_view operation, const Json& request,
                                            DynamoDbPatience& patience) {
  const std::string body = ToJsonText(request);
  const bool writes = !IsRead(operation);
  bool in_doubt = false;
  bool renewed = false;
  Error last{Code::kUnavailable, place_.Name() + " was not called: no time was left"};
  for (bool again = patience.Left().count() > 0; again; again = patience.Pause()) {
    auto response =
        Send(operation, body, writes, std::min(limits_.request_timeout, patience.Left()));
    if (!response) {
      last = response.error().Within(place_.Name());
      if (!IsTransient(last.code)) break;
      in_doubt = in_doubt || last.code == Code::kUnknownOutcome;
      continue;
    }
    DynamoDbAnswer answer = Read(*response);
    answer.in_doubt = in_doubt;
    Verdict verdict = Judge(*response, answer);
    // A file may have new ones; and the response contained the server's time.
    if (verdict == Verdict::kCredentials && !std::exchange(renewed, true)) {
      if (!IsAboutTime(answer)) credentials_.Forget();
      verdict = Verdict::kNotApplied;
    }
    if (verdict == Verdict::kFinal || verdict == Verdict::kCredentials) return answer;
    in_doubt = in_doubt || (verdict == Verdict::kInDoubt && writes);
    last = ErrorOf(operation, answer);
  }
  if (in_doubt && writes) last.code = Code::kUnknownOutcome;
  return last;
}

DynamoDbClient::Verdict DynamoDbClient::Judge(const net::HttpResponse& response,
                                              const DynamoDbAnswer& answer) {
  if (IsOneOf(answer.error,
              {"ProvisionedThroughputExceededException", "ThrottlingException",
               "RequestLimitExceeded", "TransactionConflictException",
               "TransactionInProgressException", "ReplicatedWriteConflictException"})) {
    return Verdict::kNotApplied;
  }
  if (answer.error == "TransactionCanceledException" && LostConflict(answer)) {
    return Verdict::kNotApplied;
  }
  if (IsOneOf(answer.error, {"UnrecognizedClientException", "ExpiredTokenException", "ExpiredToken",
                             "InvalidSignatureException", "InvalidClientTokenId"})) {
    return Verdict::kCredentials;
  }
  const bool nonsense = response.status == 200 && !answer.ok();
  return response.status >= 500 || nonsense ? Verdict::kInDoubt : Verdict::kFinal;
}

Result<net::HttpResponse> DynamoDbClient::Send(std::string_view operation, const std::string& body,
                                               bool writes, milliseconds timeout) {
  net::HttpRequest request{
      .method = "POST",
      .url = place_.endpoint + "/",
      .headers = {{"Content-Type", "application/x-amz-json-1.0"},
                  {"X-Amz-Target", "DynamoDB_20120810." + std::string(operation)}},
      .body = body,
      .connect_timeout = kConnectTimeout,
      .timeout = timeout,
      .writes = writes};
  MUSTER_ASSIGN(const net::AwsCredentials credentials, credentials_.Get());
  MUSTER_TRY(net::SignRequest(request, credentials, {place_.region, "dynamodb"}, SigningTime()));
  const MonoTime asked = env_.MonoNow();
  auto response = http_.Send(request);
  if (!response) return response;
  if (const auto date = response->Header("Date")) {
    if (const auto shown = net::ParseHttpDate(*date)) {
      clock_.Observe(asked, env_.MonoNow(), *shown, kTick);
    }
  }
  return response;
}

// AWS rejects signatures minutes off its own clock. Until that is known, ours is used.
WallTime DynamoDbClient::SigningTime() {
  const auto reading = clock_.Read(env_.MonoNow());
  return reading ? reading->now : env_.WallNow();
}

Status DynamoDbClient::AskForTime() {
  // A missing item: the smallest read.
  const Json missing{{"TableName", place_.table},
                     {"Key", {{"pk", {{"S", "-"}}}, {"sk", {{"S", "-"}}}}}};
  MUSTER_ASSIGN(const DynamoDbAnswer answer, Call("GetItem", missing));
  if (!answer.ok()) return ErrorOf("GetItem", answer);
  return {};
}

Result<ServerClock::Reading> DynamoDbClient::ReadClock() {
  if (clock_.IsStale(env_.MonoNow())) MUSTER_TRY(AskForTime());
  auto reading = clock_.Read(env_.MonoNow());
  if (!reading) return reading.error().Within(place_.Name());
  return reading;
}

Error DynamoDbClient::ErrorOf(std::string_view operation, const DynamoDbAnswer& answer) const {
  const std::string said = answer.message.empty() ? answer.error : answer.message;
  const auto error = [&](Code code, const std::string& what, std::string hint) {
    const bool unknown = answer.in_doubt && !IsRead(operation);
    return Error{unknown ? Code::kUnknownOutcome : code, place_.Name() + ": " + Redact(what),
                 std::move(hint)};
  };
  if (answer.error == "ResourceNotFoundException") {
    return error(Code::kNotFound, "the table does not exist",
                 "check region and name, or add ?create=true to the URL to have it created");
  }
  if (answer.error == "AccessDeniedException" || answer.error == "AccessDenied") {
    return error(Code::kPermission, "access denied to " + std::string(operation) + ": " + said,
                 "attach the policy of the guide (stores, DynamoDB) to this user or role");
  }
  if (IsAboutTime(answer)) {
    return error(Code::kPermission, "the signature's time is rejected: " + said,
                 "set this machine's clock by NTP");
  }
  if (answer.error.starts_with("ExpiredToken")) {
    return error(Code::kPermission, "the credentials have expired: " + said,
                 "get new ones (AWS_SESSION_TOKEN, or the file that AWS_PROFILE is in)");
  }
  if (IsOneOf(answer.error,
              {"UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId",
               "IncompleteSignatureException", "MissingAuthenticationTokenException"})) {
    return error(Code::kPermission, "the credentials are rejected: " + said,
                 "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the "
                 "profile that AWS_PROFILE names, and that account and region are right");
  }
  if (IsOneOf(answer.error, {"ProvisionedThroughputExceededException", "ThrottlingException",
                             "RequestLimitExceeded"})) {
    return error(Code::kUnavailable, "throttled: " + said,
                 "wait, use on-demand billing, or raise the table's and its index's capacity");
  }
  if (answer.error.find("Transaction") != std::string::npos) {
    return error(Code::kUnavailable, "too many concurrent changes to the same items: " + said,
                 "run the same command again");
  }
  if (answer.error == "ValidationException" && said.find("size") != std::string::npos) {
    return error(Code::kInvalid, "an item is too large: " + said, "make the record's body smaller");
  }
  if (answer.error.starts_with("HTTP status") || answer.error == "InternalServerError" ||
      answer.error == "ServiceUnavailable") {
    return error(Code::kUnavailable,
                 operation.empty() ? said : std::string(operation) + ": " + said,
                 "check the endpoint, or wait and run the same command again");
  }
  return error(Code::kInternal, std::string(operation) + ": " + answer.error + ": " + said,
               "run muster doctor; if it finds nothing, report this");
}

}  // namespace muster::store
