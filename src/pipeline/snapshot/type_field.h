#pragma once

#include <string>
#include <string_view>

#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// Brings documents of several types into one target: the type becomes a field, and the id begins
// with it, since documents of two types may have the same id. For one thread.
class TypeField {
 public:
  // `name` is that of the field. kInvalid: it cannot be one.
  static Status Check(std::string_view name);

  explicit TypeField(std::string name) : name_(std::move(name)) {}

  // Until the next call the document refers to this object. It gets a defect if it has the field.
  void Apply(std::string_view type, Document& document);

 private:
  const std::string name_;
  std::string id_;
  std::string body_;
  std::string defect_;
};

}  // namespace muster::pipeline
