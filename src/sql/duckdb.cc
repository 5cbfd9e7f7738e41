#include "sql/duckdb.h"

#include <dlfcn.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/mutex.h"

namespace muster::sql {
namespace {

// The part of DuckDB's C API that is used, as in duckdb.h.
using DuckDatabase = struct DuckDatabaseTag*;
using DuckConnection = struct DuckConnectionTag*;
using DuckConfig = struct DuckConfigTag*;
using DuckChunk = struct DuckChunkTag*;
using DuckVector = struct DuckVectorTag*;
using DuckPrepared = struct DuckPreparedTag*;

struct DuckResult {
  uint64_t column_count;
  uint64_t row_count;
  uint64_t rows_changed;
  void* columns;
  char* error;
  void* internal;
};

// Up to 12 bytes are inline; beyond that, a 4-byte prefix and a pointer to all of them.
struct DuckText {
  uint32_t length;
  std::array<char, 12> bytes;

  std::string_view view() const {
    if (length <= bytes.size()) return {bytes.data(), length};
    const char* start = nullptr;
    std::memcpy(&start, bytes.data() + 4, sizeof start);
    return {start, length};
  }
};
static_assert(sizeof(DuckText) == 16);

constexpr int kBigint = 5;
constexpr int kDouble = 11;
constexpr int kVarchar = 17;
constexpr int kSelectStatement = 1;

struct DuckLibrary {
  int (*open_ext)(const char*, DuckDatabase*, DuckConfig, char**);
  void (*close)(DuckDatabase*);
  int (*connect)(DuckDatabase, DuckConnection*);
  void (*disconnect)(DuckConnection*);
  void (*interrupt)(DuckConnection);
  int (*create_config)(DuckConfig*);
  int (*set_config)(DuckConfig, const char*, const char*);
  void (*destroy_config)(DuckConfig*);
  int (*query)(DuckConnection, const char*, DuckResult*);
  void (*destroy_result)(DuckResult*);
  const char* (*result_error)(DuckResult*);
  uint64_t (*column_count)(DuckResult*);
  int (*column_type)(DuckResult*, uint64_t);
  DuckChunk (*fetch_chunk)(DuckResult);
  void (*destroy_data_chunk)(DuckChunk*);
  uint64_t (*data_chunk_get_size)(DuckChunk);
  DuckVector (*data_chunk_get_vector)(DuckChunk, uint64_t);
  void* (*vector_get_data)(DuckVector);
  uint64_t* (*vector_get_validity)(DuckVector);
  int (*prepare)(DuckConnection, const char*, DuckPrepared*);
  void (*destroy_prepare)(DuckPrepared*);
  const char* (*prepare_error)(DuckPrepared);
  int (*prepared_statement_type)(DuckPrepared);
  void (*free)(void*);
};

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

void* OpenLibrary() {
  if (const char* named = std::getenv("MUSTER_DUCKDB")) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto beside = program.parent_path().parent_path() / "lib/muster/libduckdb.so";
  void* library = failed ? nullptr : dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? library : dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL);
}

Result<DuckLibrary> LoadLibrary() {
  void* library = OpenLibrary();
  if (library == nullptr) {
    const char* reason = dlerror();
    // Not kUnavailable: it is looked up only once, so waiting will not help.
    return Error{Code::kIncompatible,
                 "DuckDB cannot be loaded: " + std::string(reason != nullptr ? reason : "?"),
                 "put libduckdb.so into ../lib/muster next to the program's folder, or set "
                 "MUSTER_DUCKDB to its path; in a checkout run 'scripts/fetch duckdb'"};
  }
  DuckLibrary found{};
  const bool all = Find(library, "duckdb_open_ext", found.open_ext) &&
                   Find(library, "duckdb_close", found.close) &&
                   Find(library, "duckdb_connect", found.connect) &&
                   Find(library, "duckdb_disconnect", found.disconnect) &&
                   Find(library, "duckdb_interrupt", found.interrupt) &&
                   Find(library, "duckdb_create_config", found.create_config) &&
                   Find(library, "duckdb_set_config", found.set_config) &&
                   Find(library, "duckdb_destroy_config", found.destroy_config) &&
                   Find(library, "duckdb_query", found.query) &&
                   Find(library, "duckdb_destroy_result", found.destroy_result) &&
                   Find(library, "duckdb_result_error", found.result_error) &&
                   Find(library, "duckdb_column_count", found.column_count) &&
                   Find(library, "duckdb_column_type", found.column_type) &&
                   Find(library, "duckdb_fetch_chunk", found.fetch_chunk) &&
                   Find(library, "duckdb_destroy_data_chunk", found.destroy_data_chunk) &&
                   Find(library, "duckdb_data_chunk_get_size", found.data_chunk_get_size) &&
                   Find(library, "duckdb_data_chunk_get_vector", found.data_chunk_get_vector) &&
                   Find(library, "duckdb_vector_get_data", found.vector_get_data) &&
                   Find(library, "duckdb_vector_get_validity", found.vector_get_validity) &&
                   Find(library, "duckdb_prepare", found.prepare) &&
                   Find(library, "duckdb_destroy_prepare", found.destroy_prepare) &&
                   Find(library, "duckdb_prepare_error", found.prepare_error) &&
                   Find(library, "duckdb_prepared_statement_type", found.prepared_statement_type) &&
                   Find(library, "duckdb_free", found.free);
  if (!all) {
    return Error{Code::kIncompatible, "this libduckdb.so lacks functions that Muster needs",
                 "use the version that scripts/third_party.txt names"};
  }
  return found;
}

// Loaded once for the process; DuckDB cannot be unloaded.
const Result<DuckLibrary>& Library() {
  static const Result<DuckLibrary> kLibrary = LoadLibrary();
  return kLibrary;
}

Error ErrorOf(const char* text) {
  const std::string_view message = text != nullptr ? text : "DuckDB gives no reason";
  if (message.starts_with("INTERRUPT")) return {Code::kCancelled, "stopped"};
  const bool full = message.starts_with("Out of Memory") ||
                    message.find("No space left on device") != std::string_view::npos;
  return {full ? Code::kFull : Code::kInvalid, std::string(message)};
}

std::string Quoted(std::string_view text, char quote) {
  std::string quoted(1, quote);
  for (const char c : text) {
    if (c == quote) quoted += quote;
    quoted += c;
  }
  return quoted + quote;
}

}  // namespace

struct DuckDb::Handles {
  explicit Handles(const DuckLibrary& functions) : library(functions) {}
  ~Handles() {
    if (connection != nullptr) library.disconnect(&connection);
    if (database != nullptr) library.close(&database);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  const DuckLibrary& library;
  DuckDatabase database = nullptr;
  DuckConnection connection = nullptr;
};

namespace {

// A result that is freed with the scope.
class HeldResult {
 public:
  HeldResult(const DuckLibrary& library, DuckConnection connection, const std::string& sql)
      : library_(library) {
    failed_ = library.query(connection, sql.c_str(), &result_) != 0;
  }
  ~HeldResult() { library_.destroy_result(&result_); }
  HeldResult(const HeldResult&) = delete;
  HeldResult& operator=(const HeldResult&) = delete;

  Status Outcome() {
    if (failed_) return ErrorOf(library_.result_error(&result_));
    return {};
  }
  DuckResult& get() { return result_; }

 private:
  const DuckLibrary& library_;
  DuckResult result_{};
  bool failed_ = false;
};

// One column of a chunk.
struct DuckColumn {
  int type;
  const void* data;
  const uint64_t* validity;  // one bit per row; null: all valid

  DuckValue At(uint64_t row) const {
    if (validity != nullptr && (validity[row / 64] >> (row % 64) & 1) == 0) return {};
    if (type == kBigint) return static_cast<const int64_t*>(data)[row];
    if (type == kDouble) return static_cast<const double*>(data)[row];
    return static_cast<const DuckText*>(data)[row].view();
  }
};

}  // namespace

DuckDb::DuckDb(std::unique_ptr<Handles> handles) : handles_(std::move(handles)) {}
DuckDb::~DuckDb() = default;

Status DuckDb::CheckLibrary() {
  const Result<DuckLibrary>& library = Library();
  return library ? Status() : library.error();
}

Result<std::unique_ptr<DuckDb>> DuckDb::Open(const DuckOptions& options) {
  if (!Library()) return Library().error();
  const DuckLibrary& library = *Library();
  auto handles = std::make_unique<Handles>(library);
  DuckConfig config = nullptr;
  library.create_config(&config);
  library.set_config(config, "autoinstall_known_extensions", "false");
  library.set_config(config, "autoload_known_extensions", "false");
  char* reason = nullptr;
  const int opened = library.open_ext(nullptr, &handles->database, config, &reason);
  library.destroy_config(&config);
  if (opened != 0 || library.connect(handles->database, &handles->connection) != 0) {
    Error error = ErrorOf(reason).Within("DuckDB cannot be opened");
    if (reason != nullptr) library.free(reason);
    return error;
  }
  std::unique_ptr<DuckDb> database(new DuckDb(std::move(handles)));
  std::string folders;
  for (const std::string& folder : options.folders) {
    folders += (folders.empty() ? "" : ", ") + DuckLiteral(folder + "/");
  }
  MUSTER_TRY(database->Execute(
      "SET memory_limit = '" + std::to_string(options.memory_mb) + "MB'; SET temp_directory = " +
      DuckLiteral(options.spill_folder) + "; SET TimeZone = 'UTC'; SET allowed_directories = [" +
      folders + "]; SET enable_external_access = false; SET lock_configuration = true"));
  return database;
}

Status DuckDb::Execute(const std::string& sql) {
  return HeldResult(handles_->library, handles_->connection, sql).Outcome();
}

Result<bool> DuckDb::IsQuery(const std::string& statement) {
  const DuckLibrary& library = handles_->library;
  DuckPrepared prepared = nullptr;
  const int failed = library.prepare(handles_->connection, statement.c_str(), &prepared);
  Result<bool> answer = false;
  if (failed != 0) {
    answer = ErrorOf(library.prepare_error(prepared));
  } else {
    answer = library.prepared_statement_type(prepared) == kSelectStatement;
  }
  library.destroy_prepare(&prepared);
  return answer;
}

Status DuckDb::Query(const std::string& sql, const OnRow& row) {
  const DuckLibrary& library = handles_->library;
  HeldResult result(library, handles_->connection, sql);
  MUSTER_TRY(result.Outcome());
  const uint64_t count = library.column_count(&result.get());
  std::vector<DuckColumn> columns(count);
  for (uint64_t i = 0; i < count; ++i) {
    columns[i].type = library.column_type(&result.get(), i);
    const int type = columns[i].type;
    if (type != kBigint && type != kDouble && type != kVarchar) {
      return Error{Code::kInternal, "column " + std::to_string(i + 1) +
                                        " is of a type that must be cast to be read: " + sql};
    }
  }
  std::vector<DuckValue> values(count);
  while (DuckChunk chunk = library.fetch_chunk(result.get())) {
    const auto free = [&library](DuckChunk one) { library.destroy_data_chunk(&one); };
    const std::unique_ptr<DuckChunkTag, decltype(free)> held(chunk, free);
    for (uint64_t i = 0; i < count; ++i) {
      DuckVector vector = library.data_chunk_get_vector(chunk, i);
      columns[i].data = library.vector_get_data(vector);
      columns[i].validity = library.vector_get_validity(vector);
    }
    const uint64_t rows = library.data_chunk_get_size(chunk);
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t i = 0; i < count; ++i) values[i] = columns[i].At(r);
      MUSTER_TRY(row(values));
    }
  }
  return {};
}

Result<int64_t> DuckDb::QueryInt(const std::string& sql) {
  std::optional<int64_t> first;
  MUSTER_TRY(Query(sql, [&](std::span<const DuckValue> values) -> Status {
    if (!first && std::holds_alternative<int64_t>(values[0])) first = std::get<int64_t>(values[0]);
    return {};
  }));
  return first.value_or(0);
}

void DuckDb::Interrupt() { handles_->library.interrupt(handles_->connection); }

DuckInterrupter::DuckInterrupter(DuckDb& db, std::stop_token stop)
    : thread_([&db, stop = std::move(stop)](const std::stop_token& done) {
        Mutex mutex;
        std::condition_variable_any changed;
        MutexLock lock(mutex);
        while (!done.stop_requested()) {
          changed.wait_for(lock, done, std::chrono::milliseconds(100), [] { return false; });
          if (stop.stop_requested() && !done.stop_requested()) db.Interrupt();
        }
      }) {}

std::string DuckIdentifier(std::string_view name) { return Quoted(name, '"'); }
std::string DuckLiteral(std::string_view text) { return Quoted(text, '\''); }

}  // namespace muster::sql
