#include "net/rsa.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

namespace muster::net {

Result<std::string> SignRs256(std::string_view text, const std::string& key) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(key.data(), static_cast<int>(key.size())), BIO_free);
  // Without a callback OpenSSL would prompt for a passphrase on the terminal.
  char no_passphrase[] = "";
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> read(
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, nullptr, no_passphrase), EVP_PKEY_free);
  if (!read || EVP_PKEY_base_id(read.get()) != EVP_PKEY_RSA) {
    return Error{Code::kInvalid, "not an RSA private key in PEM without a passphrase"};
  }
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  std::string signature(static_cast<size_t>(EVP_PKEY_size(read.get())), '\0');
  size_t size = signature.size();
  const bool done =
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, read.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  if (!done) return Error{Code::kInvalid, "signing with this RSA key failed"};
  signature.resize(size);
  return signature;
}

}  // namespace muster::net
