#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/result.h"

namespace muster {

class Json;

namespace json_detail {

template <bool kConst>
class Iterator;
class Part;

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

// Types a Json converts to implicitly: `const int64_t rows = json["rows"]`.
template <class T>
concept Scalar =
    (std::is_arithmetic_v<T> && !std::same_as<T, char>) || std::same_as<T, std::string>;

template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

template <class T>
concept List = !Text<T> && !std::same_as<T, Json> && requires(const T& list) {
  list.begin();
  list.end();
  typename T::value_type;
};

template <class T>
concept StringMap = List<T> && requires {
  typename T::mapped_type;
  requires std::convertible_to<const typename T::key_type&, std::string_view>;
};

}  // namespace json_detail

// A JSON value in memory: plans, configurations, records. Migrated documents never pass through it:
// they stay raw bytes. Members keep insertion order; integers keep their 64 bits.
//
// A regular value type. As thread-safe as a std::string. It has the interface of
// nlohmann::ordered_json, as far as it is used here, without its templates: including this header
// compiles in a fraction of the time.
//
// A wrong type or a missing member throws a Json::Exception:
//
//   Json json = {{"name", "orders"}, {"rows", 3}};
//   for (const auto& [key, value] : json.items()) …
//   if (json.value("rows", 0) > 2) …             // 0 if there is no such member
//   json.at("rows").get<std::string>();          // throws: it is a number
class MUSTER_EXPORT Json {
 public:
  enum class Type : uint8_t {
    kNull,
    kBoolean,
    kInteger,
    kUnsigned,
    kFloat,
    kDiscarded,  // what could not be parsed
    // From here on, on the heap.
    kString,
    kArray,
    kObject,
    kBinary,
  };

  class MUSTER_EXPORT Exception : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };

  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Bytes = std::vector<uint8_t>;
  using iterator = json_detail::Iterator<false>;
  using const_iterator = json_detail::Iterator<true>;
  using List = std::initializer_list<json_detail::Part>;

  Json() noexcept : integer_(0) {}
  Json(std::nullptr_t) noexcept : integer_(0) {}
  template <std::same_as<bool> T>
  Json(T value) noexcept : type_(Type::kBoolean), boolean_(value) {}
  template <json_detail::Integer T>
  Json(T value) noexcept : type_(Type::kInteger) {
    if constexpr (std::unsigned_integral<T>) {
      type_ = Type::kUnsigned;
      unsigned_ = value;
    } else {
      integer_ = value;
    }
  }
  template <std::floating_point T>
  Json(T value) noexcept : type_(Type::kFloat), float_(value) {}
  Json(const char* value);
  Json(std::string value);
  Json(std::string_view value);
  // An object of pairs that begin with a string; everything else is an array.
  Json(List parts);
  // A map with keys that are strings becomes an object, other lists become arrays.
  template <json_detail::List T>
  Json(const T& list) : Json(json_detail::StringMap<T> ? object() : array()) {
    for (const auto& element : list) {
      if constexpr (json_detail::StringMap<T>) {
        object_->emplace_back(std::string(std::string_view(element.first)), Json(element.second));
      } else {
        array_->emplace_back(element);
      }
    }
  }

  Json(const Json& other);
  Json(Json&& other) noexcept : type_(other.type_), integer_(other.integer_) {
    other.type_ = Type::kNull;
  }
  Json& operator=(Json other) noexcept {
    swap(other);
    return *this;
  }
  ~Json() {
    if (type_ >= Type::kString) Destroy();
  }
  void swap(Json& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(integer_, other.integer_);
  }

  static Json array();
  static Json array(List elements);
  static Json object();
  static Json object(List members);
  static Json binary(Bytes bytes);

  // Parses one value; for a duplicate key the last value counts. Text that is not JSON, or is
  // nested deeper than 2,000 levels, throws or, without `throws`, is `discarded`. The second
  // argument is always null.
  static Json parse(std::string_view text, std::nullptr_t = nullptr, bool throws = true);
  static bool accept(std::string_view text);

  // As text; on one line, or indented by this many spaces per level. Invalid UTF-8 becomes U+FFFD;
  // a number that is not finite becomes null.
  std::string dump(int indent = -1) const;

  Type type() const { return type_; }
  const char* type_name() const;
  bool is_null() const { return type_ == Type::kNull; }
  bool is_boolean() const { return type_ == Type::kBoolean; }
  bool is_number() const { return is_number_integer() || is_number_float(); }
  bool is_number_integer() const { return type_ == Type::kInteger || type_ == Type::kUnsigned; }
  bool is_number_unsigned() const { return type_ == Type::kUnsigned; }
  bool is_number_float() const { return type_ == Type::kFloat; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_array() const { return type_ == Type::kArray; }
  bool is_object() const { return type_ == Type::kObject; }
  bool is_structured() const { return is_array() || is_object(); }
  bool is_primitive() const { return !is_structured() && !is_discarded(); }
  bool is_binary() const { return type_ == Type::kBinary; }
  bool is_discarded() const { return type_ == Type::kDiscarded; }

  // Converts a number to the requested type, clamped to its range.
  template <class T>
  T get() const {
    if constexpr (std::same_as<T, Json>) {
      return *this;
    } else if constexpr (std::same_as<T, bool>) {
      return GetBool();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(GetDouble());
    } else if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(uint64_t)) {
      return GetUnsigned();
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(GetInteger(static_cast<int64_t>(std::numeric_limits<T>::min()),
                                       static_cast<int64_t>(std::numeric_limits<T>::max())));
    } else if constexpr (std::same_as<T, std::string>) {
      return GetString();
    } else if constexpr (json_detail::StringMap<T>) {
      T map;
      for (const auto& [key, value] : Members()) {
        map.emplace(key, value.template get<typename T::mapped_type>());
      }
      return map;
    } else {
      T list;
      for (const Json& element : Elements()) {
        list.insert(list.end(), element.get<typename T::value_type>());
      }
      return list;
    }
  }
  template <json_detail::Scalar T>
  operator T() const {
    return get<T>();
  }
  // Of const std::string&, Array& and Object&.
  template <class T>
  T get_ref() const {
    using Value = std::remove_cvref_t<T>;
    if constexpr (std::same_as<Value, std::string>) {
      return GetString();
    } else if constexpr (std::same_as<Value, Object>) {
      return Members();
    } else {
      static_assert(std::same_as<Value, Array>);
      return Elements();
    }
  }
  const Bytes& get_binary() const;
  template <class T>
  T get_ref() {
    using Value = std::remove_cvref_t<T>;
    return const_cast<T>(std::as_const(*this).get_ref<const Value&>());
  }

  size_t size() const;
  bool empty() const { return size() == 0; }
  void clear();

  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  const_iterator cbegin() const;
  const_iterator cend() const;

  // The members of an object; empty for anything else.
  Object& items();
  const Object& items() const;

  // A member; null becomes an object, and a missing member becomes null.
  Json& operator[](std::string_view key);
  Json& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  // A member, or null.
  const Json& operator[](std::string_view key) const;
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  // An element; null becomes an array, and an array grows.
  template <json_detail::Integer T>
  Json& operator[](T index) {
    return ElementAt(static_cast<size_t>(index));
  }
  template <json_detail::Integer T>
  const Json& operator[](T index) const {
    return at(static_cast<size_t>(index));
  }

  // Throws if missing.
  Json& at(std::string_view key);
  const Json& at(std::string_view key) const;
  Json& at(size_t index);
  const Json& at(size_t index) const;
  Json& front() { return at(0); }
  const Json& front() const { return at(0); }
  Json& back() { return at(size() - 1); }
  const Json& back() const { return at(size() - 1); }

  iterator find(std::string_view key);
  const_iterator find(std::string_view key) const;
  bool contains(std::string_view key) const { return FindMember(key) != nullptr; }
  size_t count(std::string_view key) const { return contains(key) ? 1 : 0; }

  // A member, or `otherwise` if missing. Throws if it has another type, or if this is not an
  // object.
  template <class T>
  T value(std::string_view key, const T& otherwise) const {
    const Json* found = ValueOf(key);
    return found == nullptr ? otherwise : found->get<T>();
  }
  std::string value(std::string_view key, const char* otherwise) const {
    const Json* found = ValueOf(key);
    return found == nullptr ? otherwise : found->get<std::string>();
  }

  // Null becomes an array.
  void push_back(Json element);
  template <class... Arguments>
  Json& emplace_back(Arguments&&... arguments) {
    push_back(Json(std::forward<Arguments>(arguments)...));
    return back();
  }
  iterator insert(const_iterator before, Json element);

  // Null becomes an object; an existing member is unchanged.
  std::pair<iterator, bool> emplace(std::string_view key, Json value);
  // Sets all members of another object.
  void update(const Json& other);
  // As in RFC 7396.
  void merge_patch(const Json& patch);

  size_t erase(std::string_view key);
  iterator erase(const_iterator at);
  void erase(size_t index);

  // Numbers by their value; objects are equal if their members are, in the same order.
  friend bool operator==(const Json& a, const Json& b) { return Equal(a, b); }
  template <json_detail::Scalar T>
  friend bool operator==(const Json& a, const T& b) {
    return Equal(a, Json(b));
  }
  friend bool operator==(const Json& a, std::nullptr_t) { return a.is_null(); }
  friend bool operator==(const Json& a, const char* b) { return a.is_string() && *a.string_ == b; }
  // Numbers by their value, texts by their bytes, and else by type.
  friend std::partial_ordering operator<=>(const Json& a, const Json& b) { return Order(a, b); }
  template <json_detail::Scalar T>
  friend std::partial_ordering operator<=>(const Json& a, const T& b) {
    return Order(a, Json(b));
  }
  friend MUSTER_EXPORT std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  friend class json_detail::Iterator<false>;
  friend class json_detail::Iterator<true>;

  static bool Equal(const Json& a, const Json& b);
  static std::partial_ordering Order(const Json& a, const Json& b);
  void Destroy() noexcept;
  void MoveChildrenTo(Array& rest) noexcept;
  bool GetBool() const;
  double GetDouble() const;
  uint64_t GetUnsigned() const;
  int64_t GetInteger(int64_t least, int64_t most) const;
  const std::string& GetString() const;
  const Array& Elements() const;
  const Object& Members() const;
  const Json* FindMember(std::string_view key) const;
  const Json* ValueOf(std::string_view key) const;
  Json& ElementAt(size_t index);

  Type type_ = Type::kNull;
  union {
    bool boolean_;
    int64_t integer_;
    uint64_t unsigned_;
    double float_;
    std::string* string_;
    Array* array_;
    Object* object_;
    Bytes* binary_;
  };
  static_assert(sizeof(void*) <= sizeof(int64_t), "moves carry every member by integer_");
};

namespace json_detail {

// An element of a braced list, which can be moved from, unlike in a std::initializer_list.
class Part {
 public:
  Part(Json value) : value_(std::move(value)) {}
  Part(Json::List parts) : value_(parts) {}
  Part(std::string value) : value_(std::move(value)) {}
  template <class T>
    requires(!std::same_as<T, Json> && !std::same_as<T, Part> && !std::same_as<T, std::string> &&
             std::constructible_from<Json, const T&>)
  Part(const T& value) : value_(value) {}

  const Json& value() const { return value_; }
  Json Take() const { return std::move(value_); }

 private:
  mutable Json value_;
};

// Over the elements of an array or the values of an object; empty for anything else.
template <bool kConst>
class Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using pointer = std::conditional_t<kConst, const Json*, Json*>;
  using reference = std::conditional_t<kConst, const Json&, Json&>;
  using Member =
      std::conditional_t<kConst, const Json::Object::value_type, Json::Object::value_type>;

  Iterator() = default;
  explicit Iterator(pointer element) : element_(element) {}
  explicit Iterator(Member* member) : member_(member) {}
  template <bool kOther>
    requires(kConst && !kOther)
  Iterator(const Iterator<kOther>& other) : element_(other.element_), member_(other.member_) {}

  reference operator*() const { return member_ == nullptr ? *element_ : member_->second; }
  pointer operator->() const { return &**this; }
  reference operator[](difference_type n) const { return *(*this + n); }
  reference value() const { return **this; }
  const std::string& key() const { return member_->first; }

  Iterator& operator+=(difference_type n) {
    if (member_ != nullptr) {
      member_ += n;
    } else {
      element_ += n;
    }
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this -= 1; }
  Iterator operator++(int) { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) { return std::exchange(*this, *this - 1); }
  friend Iterator operator+(Iterator at, difference_type n) { return at += n; }
  friend Iterator operator+(difference_type n, Iterator at) { return at += n; }
  friend Iterator operator-(Iterator at, difference_type n) { return at -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return a.member_ != nullptr ? a.member_ - b.member_ : a.element_ - b.element_;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) = default;
  friend auto operator<=>(const Iterator& a, const Iterator& b) = default;

 private:
  friend class Iterator<true>;
  friend class ::muster::Json;

  pointer element_ = nullptr;
  Member* member_ = nullptr;
};

}  // namespace json_detail

inline Json::const_iterator Json::cbegin() const { return begin(); }
inline Json::const_iterator Json::cend() const { return end(); }

}  // namespace muster
