// The value type. Parsing and printing are in json.cc, numbers and comparison in json_number.cc.
#include <algorithm>

#include "muster/json.h"

namespace muster {
namespace {

[[noreturn]] void ThrowWrongType(const char* wanted, const Json& json) {
  throw Json::Exception(std::string("type must be ") + wanted + ", but is " + json.type_name());
}

[[noreturn]] void ThrowCannot(const char* what, const Json& json) {
  throw Json::Exception(std::string("cannot use ") + what + " with " + json.type_name());
}

const Json& Null() {
  static const Json kNothing;
  return kNothing;
}

}  // namespace

Json::Json(const char* value) : Json(std::string(value)) {}
Json::Json(std::string_view value) : Json(std::string(value)) {}
Json::Json(std::string value) : type_(Type::kString), string_(new std::string(std::move(value))) {}

Json::Json(List parts) : Json() {
  const bool is_object = std::all_of(parts.begin(), parts.end(), [](const json_detail::Part& part) {
    const Json& json = part.value();
    return json.is_array() && json.size() == 2 && json.array_->front().is_string();
  });
  *this = is_object ? object(parts) : array(parts);
}

Json::Json(const Json& other) : type_(other.type_), integer_(other.integer_) {
  switch (type_) {
    case Type::kString:
      string_ = new std::string(*other.string_);
      break;
    case Type::kArray:
      array_ = new Array(*other.array_);
      break;
    case Type::kObject:
      object_ = new Object(*other.object_);
      break;
    case Type::kBinary:
      binary_ = new Bytes(*other.binary_);
      break;
    case Type::kNull:
    case Type::kBoolean:
    case Type::kInteger:
    case Type::kUnsigned:
    case Type::kFloat:
    case Type::kDiscarded:
      break;
  }
}

void Json::MoveChildrenTo(Array& rest) noexcept {
  if (is_array()) {
    for (Json& element : *array_) {
      if (element.is_structured()) rest.push_back(std::move(element));
    }
  } else if (is_object()) {
    for (auto& [key, value] : *object_) {
      if (value.is_structured()) rest.push_back(std::move(value));
    }
  }
}

// Iterative, so that a deep value does not need a deep stack.
void Json::Destroy() noexcept {
  if (is_structured()) {
    Array rest;
    MoveChildrenTo(rest);
    while (!rest.empty()) {
      Json next = std::move(rest.back());
      rest.pop_back();
      next.MoveChildrenTo(rest);
    }
  }
  switch (type_) {
    case Type::kString:
      delete string_;
      break;
    case Type::kArray:
      delete array_;
      break;
    case Type::kObject:
      delete object_;
      break;
    case Type::kBinary:
      delete binary_;
      break;
    default:
      break;
  }
}

Json Json::array() {
  Json json;
  json.array_ = new Array;
  json.type_ = Type::kArray;
  return json;
}

Json Json::array(List elements) {
  Json json = array();
  json.array_->reserve(elements.size());
  for (const json_detail::Part& element : elements) json.array_->push_back(element.Take());
  return json;
}

Json Json::object() {
  Json json;
  json.object_ = new Object;
  json.type_ = Type::kObject;
  return json;
}

Json Json::object(List members) {
  Json json = object();
  json.object_->reserve(members.size());
  for (const json_detail::Part& member : members) {
    Json pair = member.Take();
    if (!pair.is_array() || pair.size() != 2 || !pair.array_->front().is_string()) {
      throw Exception("cannot create object from initializer list");
    }
    std::string& key = *pair.array_->front().string_;
    // The first of two duplicates counts, as in a std::map.
    if (json.contains(key)) continue;
    json.object_->emplace_back(std::move(key), std::move(pair.array_->back()));
  }
  return json;
}

Json Json::binary(Bytes bytes) {
  Json json;
  json.binary_ = new Bytes(std::move(bytes));
  json.type_ = Type::kBinary;
  return json;
}

const char* Json::type_name() const {
  switch (type_) {
    case Type::kNull:
      return "null";
    case Type::kBoolean:
      return "boolean";
    case Type::kString:
      return "string";
    case Type::kArray:
      return "array";
    case Type::kObject:
      return "object";
    case Type::kBinary:
      return "binary";
    case Type::kDiscarded:
      return "discarded";
    case Type::kInteger:
    case Type::kUnsigned:
    case Type::kFloat:
      break;
  }
  return "number";
}

bool Json::GetBool() const {
  if (type_ != Type::kBoolean) ThrowWrongType("boolean", *this);
  return boolean_;
}

const std::string& Json::GetString() const {
  if (!is_string()) ThrowWrongType("string", *this);
  return *string_;
}

const Json::Array& Json::Elements() const {
  if (!is_array()) ThrowWrongType("array", *this);
  return *array_;
}

const Json::Object& Json::Members() const {
  if (!is_object()) ThrowWrongType("object", *this);
  return *object_;
}

const Json::Bytes& Json::get_binary() const {
  if (!is_binary()) ThrowWrongType("binary", *this);
  return *binary_;
}

size_t Json::size() const {
  if (is_array()) return array_->size();
  if (is_object()) return object_->size();
  return is_null() ? 0 : 1;
}

void Json::clear() {
  switch (type_) {
    case Type::kString:
      string_->clear();
      break;
    case Type::kArray:
      array_->clear();
      break;
    case Type::kObject:
      object_->clear();
      break;
    case Type::kBinary:
      binary_->clear();
      break;
    case Type::kBoolean:
    case Type::kInteger:
    case Type::kUnsigned:
    case Type::kFloat:
      integer_ = 0;
      break;
    case Type::kNull:
    case Type::kDiscarded:
      break;
  }
}

Json::iterator Json::begin() {
  if (is_array()) return iterator(array_->data());
  return is_object() ? iterator(object_->data()) : iterator();
}

Json::iterator Json::end() { return begin() + (is_structured() ? std::ssize(*this) : 0); }

Json::const_iterator Json::begin() const { return const_cast<Json*>(this)->begin(); }
Json::const_iterator Json::end() const { return const_cast<Json*>(this)->end(); }

Json::Object& Json::items() { return const_cast<Object&>(std::as_const(*this).items()); }

const Json::Object& Json::items() const {
  static const Object kNone;
  return is_object() ? *object_ : kNone;
}

const Json* Json::FindMember(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : *object_) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json* Json::ValueOf(std::string_view key) const {
  if (!is_object()) ThrowCannot("value()", *this);
  return FindMember(key);
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = object();
  if (!is_object()) ThrowCannot("operator[] with a key", *this);
  if (const Json* found = FindMember(key)) return const_cast<Json&>(*found);
  return object_->emplace_back(std::string(key), Json()).second;
}

const Json& Json::operator[](std::string_view key) const {
  if (!is_object()) ThrowCannot("operator[] with a key", *this);
  const Json* found = FindMember(key);
  return found == nullptr ? Null() : *found;
}

Json& Json::ElementAt(size_t index) {
  if (is_null()) *this = array();
  if (!is_array()) ThrowCannot("operator[] with an index", *this);
  if (index >= array_->size()) array_->resize(index + 1);
  return (*array_)[index];
}

Json& Json::at(std::string_view key) { return const_cast<Json&>(std::as_const(*this).at(key)); }

const Json& Json::at(std::string_view key) const {
  if (!is_object()) ThrowCannot("at() with a key", *this);
  const Json* found = FindMember(key);
  if (found == nullptr) throw Exception("key '" + std::string(key) + "' not found");
  return *found;
}

Json& Json::at(size_t index) { return const_cast<Json&>(std::as_const(*this).at(index)); }

const Json& Json::at(size_t index) const {
  if (is_object() && index < object_->size()) return (*object_)[index].second;
  if (!is_structured()) ThrowCannot("at() with an index", *this);
  if (!is_array() || index >= array_->size()) {
    throw Exception("index " + std::to_string(index) + " is out of range");
  }
  return (*array_)[index];
}

Json::iterator Json::find(std::string_view key) {
  for (iterator at = begin(); is_object() && at != end(); ++at) {
    if (at.key() == key) return at;
  }
  return end();
}

Json::const_iterator Json::find(std::string_view key) const {
  return const_cast<Json*>(this)->find(key);
}

void Json::push_back(Json element) {
  if (is_null()) *this = array();
  if (!is_array()) ThrowCannot("push_back()", *this);
  array_->push_back(std::move(element));
}

Json::iterator Json::insert(const_iterator before, Json element) {
  if (!is_array()) ThrowCannot("insert()", *this);
  const auto index = before - cbegin();
  array_->insert(array_->begin() + index, std::move(element));
  return begin() + index;
}

std::pair<Json::iterator, bool> Json::emplace(std::string_view key, Json value) {
  if (is_null()) *this = object();
  if (!is_object()) ThrowCannot("emplace()", *this);
  if (const iterator found = find(key); found != end()) return {found, false};
  object_->emplace_back(std::string(key), std::move(value));
  return {end() - 1, true};
}

void Json::update(const Json& other) {
  if (is_null()) *this = object();
  for (const auto& [key, value] : other.Members()) (*this)[key] = value;
}

void Json::merge_patch(const Json& patch) {
  if (!patch.is_object()) {
    *this = patch;
    return;
  }
  if (!is_object()) *this = object();
  for (const auto& [key, value] : *patch.object_) {
    if (value.is_null()) {
      erase(key);
    } else {
      (*this)[key].merge_patch(value);
    }
  }
}

size_t Json::erase(std::string_view key) {
  if (!is_object()) ThrowCannot("erase()", *this);
  return std::erase_if(*object_, [&](const auto& member) { return member.first == key; });
}

Json::iterator Json::erase(const_iterator at) {
  const auto index = at - cbegin();
  if (is_object()) {
    object_->erase(object_->begin() + index);
  } else {
    erase(static_cast<size_t>(index));
  }
  return begin() + index;
}

void Json::erase(size_t index) {
  if (!is_array()) ThrowCannot("erase() with an index", *this);
  if (index >= array_->size()) {
    throw Exception("index " + std::to_string(index) + " is out of range");
  }
  array_->erase(array_->begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace muster
