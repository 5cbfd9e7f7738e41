#include "work/redrive_file.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/sha256.h"
#include "core/url.h"
#include "muster/store.h"
#include "muster/work.h"

namespace muster::work {
namespace {

constexpr size_t kNameDigits = 16;

std::string PathFor(std::string_view letters) {
  const std::string again = AgainPathOf("");
  while (letters.size() > again.size() && letters.ends_with(again)) {
    letters.remove_suffix(again.size());
  }
  return std::string(letters) + ".redriven";
}

std::string NameOf(const pipeline::LetterGroup& group, const std::string& rest) {
  const std::string all = group.run + "\n" + std::to_string(group.since_ms) + rest;
  return "letters-" + Sha256Hex(all).substr(0, kNameDigits);
}

}  // namespace

RedriveFile::RedriveFile(const std::string& letters, std::string sink, Env& env)
    : path_(PathFor(letters)), sink_(std::move(sink)), env_(env) {}

std::string RedriveFile::KeyOf(const pipeline::LetterGroup& group) const {
  return NameOf(group, "\n" + sink_);
}

Status RedriveFile::Open() {
  if (store_ != nullptr) return {};
  auto opened = store::OpenStore("sqlite:" + PercentEncode(path_), env_);
  if (!opened) {
    Error error = opened.error().Within(path_ + ", where redrives of these letters are recorded");
    error.hint = "redrive a copy of the letters in a folder that can be written";
    return error;
  }
  store_ = *std::move(opened);
  return {};
}

Result<RedriveFile::Entry*> RedriveFile::Find(const pipeline::LetterGroup& group) {
  const auto known = entries_.find({group.run, group.since_ms});
  if (known != entries_.end()) return &known->second;
  std::error_code failed;
  const bool exists = std::filesystem::exists(path_, failed);
  if (!exists && !failed) return nullptr;
  MUSTER_TRY(Open());
  MUSTER_ASSIGN(const auto stored, store_->Get(kRunKind, KeyOf(group)));
  if (!stored) return nullptr;
  return Load(group, stored->body);
}

Result<RedriveFile::Entry*> RedriveFile::Make(const pipeline::LetterGroup& group) {
  MUSTER_ASSIGN(Entry* const found, Find(group));
  if (found != nullptr) return found;
  MUSTER_TRY(Open());
  const std::string key = KeyOf(group);
  std::string body;
  const auto create =
      [&](const std::optional<store::Record>& stored) -> Result<std::optional<store::Change>> {
    if (stored) {
      body = stored->body;
      return std::nullopt;
    }
    RunBody run;
    run.incarnation = env_.NewId();
    run.ready = true;
    run.sink = sink_;
    run.since_ms = run.created_ms = group.since_ms;
    body = run.ToJson();
    return store::Change::Put(
        store::Record{.kind = kRunKind, .queue = key, .key = key, .body = body},
        store::Due::Never());
  };
  MUSTER_TRY(store::Update(*store_, kRunKind, key, create));
  return Load(group, body);
}

Result<RedriveFile::Entry*> RedriveFile::Load(const pipeline::LetterGroup& group,
                                              const std::string& body) {
  MUSTER_ASSIGN(RunBody run, RunBody::FromJson(body));
  const std::string name = KeyOf(group);
  std::string fence = NameOf(group, "");
  // Letters of earlier versions do not say when their migration began: those of two files may look
  // the same.
  if (group.since_ms == 0) fence += "-" + run.incarnation;
  Entry entry{.name = name,
              .fence = std::move(fence),
              .store = *store_,
              .run = std::move(run),
              .settled = SettledLetters(*store_, name)};
  MUSTER_TRY(entry.settled.Load());
  const auto placed =
      entries_.emplace(std::pair(group.run, group.since_ms), std::move(entry)).first;
  return &placed->second;
}

}  // namespace muster::work
