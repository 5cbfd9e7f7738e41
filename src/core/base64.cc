#include "core/base64.h"

#include <openssl/evp.h>

namespace muster {

std::string EncodeBase64(std::string_view bytes) {
  // A multiple of three, so that padding occurs only at the end.
  constexpr size_t kPiece = size_t{3} << 20;
  std::string text;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    const size_t before = text.size();
    // OpenSSL appends a NUL.
    text.resize(before + (piece.size() + 2) / 3 * 4 + 1);
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data() + before),
                    reinterpret_cast<const unsigned char*>(piece.data()),
                    static_cast<int>(piece.size()));
    text.pop_back();
  }
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  constexpr size_t kPiece = size_t{4} << 20;
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  // OpenSSL skips white space, and reads padding in the middle as zeros.
  if (text.substr(0, text.size() - padding).find_first_of(" \t\r\n=") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const std::string_view piece = text.substr(at, kPiece);
    const size_t before = bytes.size();
    bytes.resize(before + piece.size() / 4 * 3);
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data() + before),
                                     reinterpret_cast<const unsigned char*>(piece.data()),
                                     static_cast<int>(piece.size()));
    if (size < 0 || static_cast<size_t>(size) != piece.size() / 4 * 3) return std::nullopt;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace muster
