#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/result.h"

namespace muster::metadata {

// Mappings of one type, as Elasticsearch before 7 had them; `type` is empty if there are none.
struct TypedMappings {
  std::string type;
  Json mappings;
};

// The mappings by type. A snapshot has a list of them, and templates may be lists too.
std::vector<TypedMappings> SplitTypes(const Json& mappings);

// The mappings of all types as one. kIncompatible: they disagree about a field. Properties of the
// types themselves (_routing, dynamic) are kept if all agree; `dropped` gets the names of the
// others.
Result<Json> JoinTypes(const std::vector<TypedMappings>& types, std::vector<std::string>& dropped);

// A field with its path, "author.name". Fields of dynamic templates have the template's name in
// brackets first, and a mapping that may lack its type.
struct Field {
  std::string path;
  Json& mapping;
  bool is_dynamic = false;
};

// Visits every field, a parent before its children; the visitor may change it.
void ForEachField(Json& mappings, const std::function<void(const Field&)>& visit);

}  // namespace muster::metadata
