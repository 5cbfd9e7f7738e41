#include "support/tls_identity.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace muster::testing {
namespace {

template <class T, void (*F)(T*)>
struct FreeBy {
  void operator()(T* object) const { F(object); }
};

void AddExtension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION, X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    throw std::runtime_error("cannot make a certificate");
  }
}

template <class Write>
std::string TextOf(Write&& write) {
  const std::unique_ptr<BIO, FreeBy<BIO, BIO_free_all>> text(BIO_new(BIO_s_mem()));
  if (write(text.get()) != 1) throw std::runtime_error("cannot write a PEM file");
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<size_t>(count)};
}

}  // namespace

void TlsIdentity::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

TlsIdentity::TlsIdentity(const std::string& names) : context_(SSL_CTX_new(TLS_server_method())) {
  const std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY, EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, FreeBy<X509, X509_free>> certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24 * 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("muster test"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate.get(), NID_subject_alt_name, names.c_str());
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0 ||
      SSL_CTX_use_certificate(context_.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1) {
    throw std::runtime_error("cannot make a certificate");
  }
  pem_ = TextOf([&](BIO* text) { return PEM_write_bio_X509(text, certificate.get()); });
  key_pem_ = TextOf([&](BIO* text) {
    return PEM_write_bio_PrivateKey(text, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void TlsIdentity::RequireClient(const TlsIdentity& client) {
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()),
                      SSL_CTX_get0_certificate(client.context_.get()));
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

}  // namespace muster::testing
