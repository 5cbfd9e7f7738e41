#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace muster::testing {

// A fresh self-signed certificate with its key.
class TlsIdentity {
 public:
  // `names` are its host names, in OpenSSL's syntax.
  explicit TlsIdentity(const std::string& names = "IP:127.0.0.1,DNS:localhost");

  // The certificate, to be trusted as a CA.
  const std::string& pem() const { return pem_; }
  const std::string& key_pem() const { return key_pem_; }

  // Servers with this identity then refuse clients without a certificate of that one.
  void RequireClient(const TlsIdentity& client);

  ssl_ctx_st* context() const { return context_.get(); }  // for servers

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::string pem_;
  std::string key_pem_;
};

}  // namespace muster::testing
