#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace muster::testing {

// A key and a certificate that it signed itself, made afresh.
class TlsIdentity {
 public:
  // `names` are the hosts that it is for, as OpenSSL writes them.
  explicit TlsIdentity(const std::string& names = "IP:127.0.0.1,DNS:localhost");

  // The certificate, to be trusted as an authority.
  const std::string& pem() const { return pem_; }

  ssl_ctx_st* context() const { return context_.get(); }  // for servers

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::string pem_;
};

}  // namespace muster::testing
