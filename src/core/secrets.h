#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Secrets enter the process by reference and leave it as `***`.
//
// Known secrets are kept for the life of the process, in memory only. Thread-safe.

// Shorter values are not redacted: they occur in any text by chance, and hiding them would hide
// everything. No secret should be that short.
inline constexpr size_t kMinRedactedBytes = 4;

// Replaces every ${env:NAME} and ${file:PATH} with its value, and registers the value with Redact.
// A file's value is its content, at most 64 KiB, without one trailing newline. A `$` not followed
// by `{` stands for itself.
//
// kInvalid: an unknown kind of reference, an unset variable, an unreadable file, a missing `}`. The
// message names the reference, never a value.
Result<std::string> ExpandSecrets(std::string_view text);

// Whether ExpandSecrets knows every reference in a text, without resolving them.
Status CheckSecretForms(std::string_view text);

// The number of references in a text, including percent-encoded ones (up to three times over).
// Zero: ExpandSecrets leaves it unchanged, and every part of it as a URL.
size_t CountSecretReferences(std::string_view text);

// Whether the text is exactly one reference, so that it may be shown and stored.
bool IsSecretReference(std::string_view text);

// Registers a secret from another source.
void RememberSecret(std::string_view value);

// The text with every registered value replaced by `***`: verbatim, percent-encoded, JSON-escaped,
// and in base64 (alone or inside a longer encoded text). All output for people
// passes through here.
std::string Redact(std::string_view text);

}  // namespace muster
