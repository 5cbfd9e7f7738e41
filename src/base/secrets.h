#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Secrets enter the process by reference and leave it as `***`.
//
// What is known to be secret is kept for the whole process, in memory only. Thread-safe.

// Values shorter than this are not redacted: they occur in any text by chance, and hiding them
// would hide everything. Nobody should have a secret that short.
inline constexpr size_t kMinRedactedBytes = 4;

// Replaces every ${env:NAME} and ${file:PATH} by its value, and remembers the value for Redact. The
// value of a file is its content, of at most 64 KiB, without one trailing newline. A `$` that no
// `{` follows stands for itself.
//
// kInvalid: an unknown kind of reference, a variable that is not set, a file that cannot be read, a
// missing `}`. The message names the reference, never a value.
Result<std::string> ExpandSecrets(std::string_view text);

// How many references a text has, those included that are percent-encoded (up to three times over).
// Zero: ExpandSecrets leaves it, and every part of it as a URL, as it is.
size_t CountSecretReferences(std::string_view text);

// Whether the text is one reference and nothing else, so that it may be shown and stored.
bool IsSecretReference(std::string_view text);

// Remembers a secret that came another way.
void RememberSecret(std::string_view value);

// The text with every remembered value replaced by `***`: as it is, percent-encoded, escaped as in
// a JSON string, and in base64 (on its own or inside a longer encoded text). Everything that leaves
// the process for a person to read passes through here.
std::string Redact(std::string_view text);

}  // namespace muster
