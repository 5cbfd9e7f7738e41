#include "serve/tls_context.h"

#include <openssl/ssl.h>

namespace muster::serve {

void FreeTls::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<TlsContext> LoadTls(const std::string& certificate, const std::string& key) {
  if (certificate.empty()) return TlsContext();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return Error{Code::kInternal, "cannot initialize TLS"};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // The buffer of a repeated write may have moved.
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) {
    return Error{Code::kInvalid, "no certificate in " + certificate,
                 "give a PEM file, the server's own certificate first"};
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Error{Code::kInvalid, key + " is not the key of " + certificate};
  }
  return context;
}

}  // namespace muster::serve
