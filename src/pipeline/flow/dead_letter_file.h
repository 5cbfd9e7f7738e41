#pragma once

#include <memory>
#include <string>

#include "core/file_calls.h"
#include "core/record_version.h"
#include "muster/migrate.h"

namespace muster::pipeline {

inline constexpr RecordFormat kLetterFormat{"dead letter", 1};

// The fields of a dead letter beside its version.
namespace letter_fields {
inline constexpr char kRun[] = "run";
inline constexpr char kCollection[] = "collection";
inline constexpr char kTarget[] = "target";
inline constexpr char kTransformed[] = "transformed";
inline constexpr char kItem[] = "item";
inline constexpr char kId[] = "id";
inline constexpr char kRouting[] = "routing";
inline constexpr char kPosition[] = "position";
inline constexpr char kDeleted[] = "deleted";
inline constexpr char kNullIsJson[] = "null_is_json";
inline constexpr char kDocumentVersion[] = "version";
inline constexpr char kError[] = "error";
inline constexpr char kDocument[] = "document";
inline constexpr char kDocumentBase64[] = "document_base64";
}  // namespace letter_fields

// OpenDeadLetters on injected file calls.
std::unique_ptr<DeadLetters> NewDeadLetterFile(const std::string& path, const std::string& run,
                                               FileCalls& calls);

}  // namespace muster::pipeline
