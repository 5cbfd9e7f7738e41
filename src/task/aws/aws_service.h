#pragma once

#include <string>
#include <string_view>

namespace muster::task {

// The wire protocol of one AWS service.
struct AwsService {
  enum class Protocol {
    kJson10,
    kJson11,
    kQuery,
    kRestByName,  // JSON, with the action's name as the path: StartFlow is POST /start-flow
  };

  std::string_view name;        // in resources: "secretsmanager"
  std::string_view error_name;  // before the names of errors: "SecretsManager"
  std::string_view host;        // HOST.REGION.amazonaws.com
  std::string_view signing;     // the service's name in signatures
  Protocol protocol;
  std::string_view version;   // JSON: the prefix of the action in X-Amz-Target; query: Version
  bool camel_case;            // names on the wire begin with a lower-case letter
  std::string_view declared;  // the first letters of the common errors that it declares: "ATV"
  std::string_view tokens;    // "Action=Member Action=Member …", see TokenMember
};

// Null: an unknown service, or one with another protocol.
const AwsService* FindAwsService(std::string_view name);

// The parameter that makes an action idempotent, by its name on the wire; empty: none.
std::string_view TokenMember(const AwsService& service, std::string_view action);

// Whether AWS's SDK has a class for an error. Step Functions reports others, such as a bad
// signature, as the service's general exception.
bool IsDeclaredError(const AwsService& service, std::string_view code);

}  // namespace muster::task
