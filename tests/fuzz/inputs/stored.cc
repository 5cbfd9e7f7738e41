// Records and files that are reached only through what reads them.

#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "change/follow_checkpoint.h"
#include "fuzz/inputs/inputs.h"
#include "muster/events.h"
#include "muster/store.h"
#include "pipeline/file/file_sink_state.h"
#include "pipeline/flow/verify_state.h"
#include "plan/compile/state_table.h"
#include "plan/run/side_records.h"
#include "replica/definitions.h"
#include "replica/operations.h"
#include "replica/replica_file.h"
#include "serve/access.h"
#include "serve/sessions.h"
#include "task/call/status_executor.h"
#include "task/data/staging.h"
#include "task/notify/outbox.h"

namespace muster::fuzz {
namespace {

// A store with this record only; empty if no store would take it.
std::unique_ptr<store::Store> StoreWith(const store::Record& record) {
  auto store = *store::OpenStore("memory:", RealEnv());
  const store::Change put = store::Change::Put(record, store::Due::Never());
  static_cast<void>(store->Write({&put, 1}));
  return store;
}

plan::RunState Run() {
  plan::RunState run;
  run.id = "m";
  run.execution = "e";
  return run;
}

std::shared_ptr<replica::Projection> AProjection() {
  const auto file = replica::ParseReplicaFile(
      "set: s\nevents: \"memory:\"\nread_model: \"sqlite:x\"\n"
      "projections: {p: {\"on\": {T: DELETE FROM x}}}\n",
      "set.yaml", RealEnv());
  return file ? file->projections.front() : nullptr;
}

void ReadRecords(std::string_view bytes) {
  const size_t kind = TakeChoice(bytes, 7);
  const std::string body(bytes);
  if (kind == 0) {
    const auto store = StoreWith({.kind = "plan.wish", .key = "m", .body = body});
    static_cast<void>(plan::DrainRequested(*store, Run()));
  }
  if (kind == 1) {
    const auto store = StoreWith({.kind = "plan.rows", .key = "m", .body = body});
    static_cast<void>(plan::ReadLive(*store, Run()));
  }
  if (kind == 2) {
    const auto store = StoreWith({.kind = "plan.states", .key = "e/0", .body = body});
    static_cast<void>(plan::ReadStates(*store, "e"));
  }
  if (kind == 3) {
    static_cast<void>(task::Outbox::Read({.kind = "notification", .key = "m/1", .body = body}));
  }
  if (kind == 4) {
    const auto store = StoreWith({.kind = "migration_status", .key = "t/m", .body = body});
    static_cast<void>(task::FindMigrationStatus(*store, "t", "m"));
  }
  if (kind == 5) {
    static const auto kProjection = AProjection();
    const auto store = StoreWith({.kind = "replica-definition", .key = "s/p/x", .body = body});
    static_cast<void>(replica::ProjectionBy(*store, "s", kProjection, "x"));
  }
  if (kind == 6) {
    const auto store = StoreWith({.kind = replica::kReplicaKind,
                                  .queue = replica::kReplicaQueue,
                                  .key = replica::ScaleKey("s"),
                                  .body = body});
    static_cast<void>(replica::ReadSet(*store, "s"));
  }
}

void ReadFollowCheckpoint(std::string_view bytes) {
  const auto log = *events::OpenEventLog("memory:", {.slots = 1}, RealEnv());
  const events::StreamAppend append{
      .stream = "$follow/f",
      .events = {{.type = "follow.checkpoint", .payload = std::string(bytes)}}};
  if (log->Append({&append, 1})) static_cast<void>(change::FollowLog(*log, "f").Read());
}

void ReadVerifyState(std::string_view bytes) {
  // Too large for the stack.
  const auto state = std::make_unique<pipeline::VerifyState>();
  if (!pipeline::VerifyState::FromText(std::string(bytes), *state)) return;
  const std::string written = state->ToText();
  const auto again = std::make_unique<pipeline::VerifyState>();
  if (!pipeline::VerifyState::FromText(written, *again) || again->ToText() != written) {
    __builtin_trap();
  }
}

void ReadManifest(std::string_view bytes) {
  const std::filesystem::path path = FileWith(bytes, ".manifest.json");
  const auto staging = task::Staging::At(path.parent_path().string());
  if (staging) static_cast<void>(staging->FindAny("input"));
}

// The owner of a folder that a file sink writes to.
void ReadFileOwner(std::string_view bytes) {
  const std::string folder =
      std::filesystem::path(FileWith(bytes, ".owner")).parent_path().string() + "/state";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(folder + "/../input.owner", folder + "/run.json",
                             std::filesystem::copy_options::overwrite_existing);
  const pipeline::Fence fence{.run = "r", .incarnation = "i", .item = "c__0__0"};
  std::shared_ptr<pipeline::FileRunLock> held;
  static_cast<void>(
      pipeline::FileSinkState::Open(folder, folder + "/../output", fence, held, RealEnv()));
}

void ReadServerFiles(std::string_view bytes) {
  if (TakeChoice(bytes, 2) == 0) {
    const std::string path = FileWith(bytes, ".tokens");
    chmod(path.c_str(), 0600);
    static_cast<void>(serve::LoadTokens(path));
    return;
  }
  serve::Tokens tokens;
  tokens.for_operator = "an operator's token";
  tokens.for_viewer = "a viewer's token";
  const serve::Sessions sessions(tokens, 80, FileWith(bytes, ".ended"), RealEnv());
  static_cast<void>(sessions.Find(bytes));
}

constexpr Input kInputs[] = {
    {"side_records", ReadRecords},     {"follow_checkpoint", ReadFollowCheckpoint},
    {"verify_state", ReadVerifyState}, {"manifest", ReadManifest},
    {"file_owner", ReadFileOwner},     {"server_files", ReadServerFiles}};

}  // namespace

std::span<const Input> StoredInputs() { return kInputs; }

}  // namespace muster::fuzz
