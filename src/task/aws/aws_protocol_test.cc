#include "task/aws/aws_protocol.h"

#include <gtest/gtest.h>

#include "task/aws/aws_xml.h"

namespace muster::task {
namespace {

const AwsService& Service(std::string_view name) {
  const AwsService* service = FindAwsService(name);
  if (service == nullptr) ADD_FAILURE() << name;
  return *service;
}

std::string HeaderOf(const net::HttpRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.headers) {
    if (net::SameHeaderName(key, name)) return value;
  }
  return {};
}

net::HttpRequest Encoded(std::string_view service, std::string_view action,
                         const Json& parameters) {
  auto request = EncodeAwsCall(Service(service), action, parameters);
  EXPECT_TRUE(request) << request.error().ToString();
  return *std::move(request);
}

TEST(AwsProtocol, JsonServicesAreCalledByTarget) {
  const auto request = Encoded("dynamodb", "PutItem", {{"TableName", "t"}});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "/");
  EXPECT_EQ(HeaderOf(request, "X-Amz-Target"), "DynamoDB_20120810.PutItem");
  EXPECT_EQ(HeaderOf(request, "Content-Type"), "application/x-amz-json-1.0");
  EXPECT_EQ(request.body, R"({"TableName":"t"})");
  EXPECT_EQ(HeaderOf(Encoded("glue", "GetJobRun", nullptr), "Content-Type"),
            "application/x-amz-json-1.1");
}

TEST(AwsProtocol, ParametersHaveTheServicesNames) {
  EXPECT_EQ(Encoded("sfn", "StartExecution", {{"StateMachineArn", "a"}, {"Input", "{}"}}).body,
            R"({"stateMachineArn":"a","input":"{}"})");
  EXPECT_EQ(
      Encoded("ecs", "RunTask", {{"Overrides", {{"Cpu", "1"}}}, {"Tags", {{"Key", "v"}}}}).body,
      R"({"overrides":{"cpu":"1"},"tags":{"Key":"v"}})");
  const auto flow = Encoded("appflow", "StartFlow", {{"FlowName", "f"}});
  EXPECT_EQ(flow.url, "/start-flow");
  EXPECT_EQ(flow.body, R"({"flowName":"f"})");
}

TEST(AwsProtocol, QueryServicesGetAForm) {
  EXPECT_EQ(
      Encoded("sns", "Publish",
              {{"TopicArn", "arn:x"},
               {"Message", "a b&c=d"},
               {"MessageAttributes", {{"k", {{"DataType", "String"}, {"StringValue", "v"}}}}}})
          .body,
      "Action=Publish&Version=2010-03-31&TopicArn=arn%3Ax&Message=a%20b%26c%3Dd"
      "&MessageAttributes.entry.1.Name=k&MessageAttributes.entry.1.Value.DataType=String"
      "&MessageAttributes.entry.1.Value.StringValue=v");
  EXPECT_EQ(Encoded("cloudformation", "X", {{"List", {1, true}}, {"In", {{"A", "b"}}}}).body,
            "Action=X&Version=2010-05-15&List.member.1=1&List.member.2=true&In.A=b");
}

TEST(AwsProtocol, ParametersMustBeAnObject) {
  EXPECT_EQ(EncodeAwsCall(Service("glue"), "GetJob", Json("x")).error().code, Code::kInvalid);
}

TEST(AwsProtocol, ResultsAreInPascalCaseWithReadableTimes) {
  const net::HttpResponse response{
      .status = 200,
      .headers = {},
      .body = R"({"executionArn":"a","startDate":1700000000.123,"stopDate":1700000000,
                  "tags":{"k":1},"creationTime":1700000000123,"executionTime":120})"};
  const auto text = DecodeAwsAnswer(Service("sfn"), "X", response, AwsTimes::kText);
  ASSERT_TRUE(text) << text.error().ToString();
  EXPECT_EQ(*text, Json::parse(R"({"ExecutionArn":"a","StartDate":"2023-11-14T22:13:20.123Z",
      "StopDate":"2023-11-14T22:13:20Z","Tags":{"k":1},"CreationTime":1700000000123,
      "ExecutionTime":120})"));
  const auto number = DecodeAwsAnswer(Service("sfn"), "X", response, AwsTimes::kMilliseconds);
  EXPECT_EQ((*number)["StartDate"], 1700000000123);
}

TEST(AwsProtocol, ResultsInXmlAreReadFromTheActionsResult) {
  const net::HttpResponse response{
      .status = 200,
      .headers = {},
      .body =
          "<?xml version=\"1.0\"?>\n<PublishResponse xmlns=\"http://sns/\">\n"
          "  <PublishResult><MessageId>m&amp;1</MessageId></PublishResult>\n"
          "  <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>\n"
          "</PublishResponse>"};
  const auto result = DecodeAwsAnswer(Service("sns"), "Publish", response, AwsTimes::kText);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(*result, Json::parse(R"({"MessageId":"m&1"})"));
}

TEST(AwsProtocol, ErrorsOfEveryProtocolHaveACodeAndAMessage) {
  const auto json = DecodeAwsError(
      {.status = 400,
       .headers = {{"x-amzn-RequestId", "r1"}},
       .body = R"({"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
                   "message":"no table"})"});
  EXPECT_EQ(json.code, "ResourceNotFoundException");
  EXPECT_EQ(json.message, "no table");
  EXPECT_EQ(json.request_id, "r1");

  const auto rest = DecodeAwsError({.status = 404,
                                    .headers = {{"x-amzn-ErrorType", "NotFound:http://x/"}},
                                    .body = R"({"Message":"gone"})"});
  EXPECT_EQ(rest.code, "NotFound");
  EXPECT_EQ(rest.message, "gone");

  const auto xml = DecodeAwsError(
      {.status = 404,
       .headers = {},
       .body = "<ErrorResponse><Error><Type>Sender</Type><Code>NotFound</Code>"
               "<Message>Topic does not exist</Message></Error><RequestId>r2</RequestId>"
               "</ErrorResponse>"});
  EXPECT_EQ(xml.code, "NotFound");
  EXPECT_EQ(xml.message, "Topic does not exist");
  EXPECT_EQ(xml.request_id, "r2");

  EXPECT_EQ(DecodeAwsError({.status = 502, .headers = {}, .body = "<html>"}).code, "HttpStatus502");
}

TEST(AwsXml, ListsAndMapsAreRecognisedByTheirElements) {
  const auto tree = ParseAwsXml(
      "<A><L><member>1</member><member><x>y</x></member></L>"
      "<M><entry><key>k</key><value>v</value></entry></M><R>1</R><R>2</R><E/>"
      "<T>a &lt;&#65;&#x42;<![CDATA[<c>]]></T><!-- no --></A>");
  ASSERT_TRUE(tree) << tree.error().ToString();
  EXPECT_EQ(*tree, Json::parse(R"({"L":["1",{"x":"y"}],"M":{"k":"v"},"R":["1","2"],"E":"",
                                   "T":"a <AB<c>"})"));
}

TEST(AwsXml, IllFormedXmlIsAnError) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<a>";
  for (const std::string& text :
       {std::string(""), std::string("text"), std::string("<a>"), std::string("<a><b></a></b>"),
        std::string("<a>&unknown;</a>"), std::string("<a>&#0;</a>"), std::string("<"),
        std::string("<a"), std::string("<!DOCTYPE x><a/>"), std::string("<></>"), deep}) {
    const auto tree = ParseAwsXml(text);
    ASSERT_FALSE(tree) << text;
    EXPECT_EQ(tree.error().code, Code::kCorrupt);
  }
}

TEST(AwsService, KnowsTokensAndDeclaredErrors) {
  EXPECT_EQ(TokenMember(Service("dynamodb"), "TransactWriteItems"), "ClientRequestToken");
  EXPECT_EQ(TokenMember(Service("dynamodb"), "PutItem"), "");
  EXPECT_EQ(TokenMember(Service("appflow"), "StartFlow"), "clientToken");
  EXPECT_FALSE(IsDeclaredError(Service("dynamodb"), "ValidationException"));
  EXPECT_TRUE(IsDeclaredError(Service("glue"), "ValidationException"));
  EXPECT_TRUE(IsDeclaredError(Service("dynamodb"), "ConditionalCheckFailedException"));
  EXPECT_EQ(FindAwsService("nosuch"), nullptr);
}

}  // namespace
}  // namespace muster::task
