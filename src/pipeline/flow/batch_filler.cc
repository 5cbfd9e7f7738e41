#include "pipeline/flow/batch_filler.h"

#include <functional>

namespace muster::pipeline {
namespace {

// Skipped documents cost time but no memory. A batch also ends after reading this many times its
// limit, so that progress is still reported.
constexpr int64_t kReadPerKept = 16;

size_t SizeOf(const Document& document) { return document.id.size() + document.body.size(); }

// Text that no transform changed still belongs to the reader.
std::string_view InArena(std::string_view text, std::string_view original, Arena& arena) {
  if (text.empty()) return {};
  const std::less<const char*> before;
  const bool is_original = !before(text.data(), original.data()) &&
                           !before(original.data() + original.size(), text.data() + text.size());
  return is_original ? arena.Copy(text) : text;
}

}  // namespace

void ReadBatch::Clear() {
  batch.Clear();
  failed.clear();
  read = skipped = bytes = 0;
  position.clear();
  kept_bytes = 0;
  last = false;
  outcome = {};
}

BatchFiller::BatchFiller(const Pipeline& pipeline, std::unique_ptr<Reader> reader)
    : pipeline_(pipeline), reader_(std::move(reader)) {}

void BatchFiller::Fill(ReadBatch& batch) {
  batch.Clear();
  const BatchLimits limits = pipeline_.throttle.Bounded(pipeline_.options.limits);
  const auto most_read = static_cast<int64_t>(limits.max_docs) * kReadPerKept;
  const auto most_bytes = static_cast<int64_t>(limits.max_bytes) * kReadPerKept;
  if (Status made = MakeTransforms(); !made) {
    batch.last = true;
    batch.outcome = std::move(made);
    return;
  }
  if (!held_.batch.documents.empty()) {
    const Document& held = held_.batch.documents.front();
    ++batch.read;
    batch.bytes += held_.read_bytes;
    batch.position = held.position;
    Document document = held;
    for (std::string_view* text :
         {&document.id, &document.routing, &document.body, &document.position})
      *text = batch.batch.arena.Copy(*text);
    document.defect = {};
    Keep(batch, document, std::move(held_.failure));
    held_.batch.Clear();
  }
  while (batch.kept() < limits.max_docs && batch.read < most_read && batch.bytes < most_bytes) {
    Result<bool> more = ReadOne(batch, limits);
    if (more && *more) continue;
    // Either the batch is full or the source is exhausted.
    batch.last = held_.batch.documents.empty();
    if (!more) batch.outcome = std::move(more).error();
    return;
  }
}

// False: the document was held back, or the source is exhausted.
Result<bool> BatchFiller::ReadOne(ReadBatch& batch, const BatchLimits& limits) {
  MUSTER_ASSIGN(const std::optional<Document> next, reader_->Next());
  if (!next) return false;
  const Document& original = *next;
  Document document = original;
  std::optional<std::string> failure;
  Arena& arena = batch.batch.arena;
  if (!original.defect.empty()) {
    failure = original.defect;
  } else {
    Result<bool> wanted = Transformed(document, arena);
    if (!wanted) {
      failure = wanted.error().ToString();
      document = original;
    } else if (!*wanted) {
      ++batch.read;
      ++batch.skipped;
      batch.bytes += static_cast<int64_t>(original.body.size());
      batch.position = original.position;
      return true;
    }
  }
  if (batch.kept() > 0 && batch.kept_bytes + SizeOf(document) > limits.max_bytes) {
    held_.batch.Add(document);
    held_.read_bytes = static_cast<int64_t>(original.body.size());
    held_.failure = std::move(failure);
    return false;
  }
  ++batch.read;
  batch.bytes += static_cast<int64_t>(original.body.size());
  batch.position = original.position;
  Document kept = original;
  kept.id = InArena(document.id, original.id, arena);
  kept.routing = InArena(document.routing, original.routing, arena);
  kept.body = InArena(document.body, original.body, arena);
  kept.position = arena.Copy(original.position);
  kept.defect = {};
  Keep(batch, kept, std::move(failure));
  return true;
}

void BatchFiller::Keep(ReadBatch& batch, const Document& document,
                       std::optional<std::string> failure) {
  batch.kept_bytes += SizeOf(document);
  if (failure) {
    batch.failed.push_back({document, *std::move(failure)});
  } else {
    batch.batch.documents.push_back(document);
  }
}

Result<bool> BatchFiller::Transformed(Document& document, Arena& arena) {
  for (const auto& transform : *transforms_) {
    MUSTER_ASSIGN(const bool wanted, transform->Apply(document, arena));
    if (!wanted) return false;
  }
  return true;
}

// Created on the thread that uses them: script engines may require it.
Status BatchFiller::MakeTransforms() {
  if (transforms_) return {};
  MUSTER_ASSIGN(transforms_, pipeline_.transforms.Make());
  return {};
}

}  // namespace muster::pipeline
