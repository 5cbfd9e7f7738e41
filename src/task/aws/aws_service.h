#pragma once

#include <string>
#include <string_view>

namespace muster::task {

// How one AWS service is spoken to.
struct AwsService {
  enum class Protocol {
    kJson10,
    kJson11,
    kQuery,
    kRestByName,  // JSON, and the action's name is the path: StartFlow is POST /start-flow
  };

  std::string_view name;        // in resources: "secretsmanager"
  std::string_view error_name;  // before the names of errors: "SecretsManager"
  std::string_view host;        // HOST.REGION.amazonaws.com
  std::string_view signing;     // the service's name in signatures
  Protocol protocol;
  std::string_view version;   // JSON: what stands before the action in X-Amz-Target; query: Version
  bool camel_case;            // names on the wire begin with a lower-case letter
  std::string_view declared;  // the first letters of the common errors that it declares: "ATV"
  std::string_view tokens;    // "Action=Member Action=Member …", see TokenMember
};

// Null: no service of that name is known, or it speaks another protocol.
const AwsService* FindAwsService(std::string_view name);

// The parameter that makes a repetition of the action harmless, as it is named on the wire; empty
// if the action has none.
std::string_view TokenMember(const AwsService& service, std::string_view action);

// Whether an error has a class of its own in AWS's SDK. Others (a bad signature, say) any service
// may give, and Step Functions calls them by the service's general exception.
bool IsDeclaredError(const AwsService& service, std::string_view code);

}  // namespace muster::task
