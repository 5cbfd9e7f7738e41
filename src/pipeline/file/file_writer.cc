#include "pipeline/file/file_writer.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/file.h"
#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {
namespace {

Error LeaseLost(const std::string& item) {
  return {Code::kLeaseLost, "a later holder has opened " + item};
}

uint64_t BytesIn(const std::vector<FilePiece>& pieces) {
  uint64_t bytes = 0;
  for (const FilePiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

}  // namespace

FileWriter::FileWriter(std::shared_ptr<FileSinkState> state, FileWriterPlace place,
                       std::unique_ptr<FileEncoder> encoder)
    : state_(std::move(state)), place_(std::move(place)), encoder_(std::move(encoder)) {}

FileWriter::~FileWriter() {
  // Drops a piece without committed bytes.
  const bool counts = !item_.pieces.empty() && item_.pieces.back().path == piece_path_;
  if (piece_ && !counts) {
    std::error_code ignored;
    std::filesystem::remove(piece_path_, ignored);
  }
}

Result<std::unique_ptr<Writer>> FileWriter::Open(std::shared_ptr<FileSinkState> state,
                                                 FileWriterPlace place,
                                                 std::unique_ptr<FileEncoder> encoder,
                                                 const Fence& fence, Env& env) {
  std::unique_ptr<FileWriter> writer(
      new FileWriter(std::move(state), std::move(place), std::move(encoder)));
  MUSTER_ASSIGN(const auto lock, writer->state_->Acquire());
  MUSTER_ASSIGN(auto stored, writer->state_->Load(writer->place_.name));
  FileItem& item = writer->item_;
  if (stored) {
    item = *std::move(stored);
    const StoredFence opened{.incarnation = item.incarnation,
                             .epoch = item.epoch,
                             .holder = item.holder,
                             .sealed = false,
                             .progress = {}};
    MUSTER_TRY(CheckOpen(fence, opened, writer->place_.output));
  }
  item.item = fence.item;
  item.incarnation = fence.incarnation;
  item.epoch = fence.epoch;
  item.holder = fence.holder;
  item.writer = env.NewId();
  MUSTER_TRY(writer->state_->Store(writer->place_.name, item));
  writer->known_ = item.progress;
  writer->progress_ = item.progress;
  writer->sealed_ = item.phase == FileItem::Phase::kSealed;
  writer->piece_path_ = writer->state_->PiecePath(writer->place_.name, item.writer);
  return writer;
}

bool FileWriter::RecordsRefusals(RefusalRecorder record) {
  record_ = std::move(record);
  return true;
}

Result<std::vector<Refused>> FileWriter::Write(const Batch& batch, const Progress& after,
                                               const Patience&) {
  if (item_.phase != FileItem::Phase::kOpen) {
    return Error{Code::kLeaseLost, item_.item + " is complete: nothing can be added"};
  }
  if (!batch.documents.empty()) MUSTER_TRY(Begin(&batch));
  std::vector<Refused> refused;
  for (size_t i = 0; i < batch.documents.size(); ++i) {
    scratch_.clear();
    if (const Status encoded = encoder_->Encode(batch.documents[i], scratch_); !encoded) {
      refused.push_back({i, encoded.error().ToString()});
      if (record_) MUSTER_TRY(record_(batch.documents[i], refused.back().reason));
      continue;
    }
    MUSTER_TRY(piece_->Append(scratch_));
  }
  progress_ = WithRefused(after, refused);
  return refused;
}

// Starts this holder's piece.
Status FileWriter::Begin(const Batch* first) {
  if (begun_) return {};
  MUSTER_ASSIGN(const std::string header, encoder_->Header(first));
  MUSTER_ASSIGN(piece_, CreatePackedOutput(piece_path_, place_.compression));
  if (place_.has_header && BytesIn(item_.pieces) == 0) MUSTER_TRY(piece_->Append(header));
  begun_ = true;
  return {};
}

Status FileWriter::Flush() {
  if (item_.phase != FileItem::Phase::kOpen) return {};
  return Update(FileItem::Phase::kOpen);
}

// Makes the written data durable, then commits it if the item is still held.
Status FileWriter::Update(FileItem::Phase phase) {
  FileItem next = item_;
  if (piece_) {
    MUSTER_ASSIGN(const uint64_t bytes, piece_->Flush());
    if (next.pieces.empty() || next.pieces.back().path != piece_path_) {
      next.pieces.push_back({piece_path_});
    }
    next.pieces.back().bytes = bytes;
  }
  next.progress = progress_;
  next.phase = phase;
  MUSTER_ASSIGN(const auto lock, state_->Acquire());
  MUSTER_TRY(CheckMine());
  MUSTER_TRY(state_->Store(place_.name, next));
  item_ = std::move(next);
  return {};
}

Status FileWriter::CheckMine() const {
  MUSTER_ASSIGN(const auto stored, state_->Load(place_.name));
  if (!stored || stored->writer != item_.writer) return LeaseLost(item_.item);
  return {};
}

// A sealed item is published as it is: nothing can be added any more.
Result<std::optional<Progress>> FileWriter::Seal() {
  if (item_.phase == FileItem::Phase::kOpen) {
    MUSTER_TRY(Publish(FileItem::Phase::kSealed));
    sealed_ = true;
  }
  return item_.progress;
}

Status FileWriter::Finish() {
  if (item_.phase != FileItem::Phase::kOpen) return {};
  return Publish(FileItem::Phase::kFinished);
}

Status FileWriter::Publish(FileItem::Phase phase) {
  // An item without documents still gets a file with a header.
  if (BytesIn(item_.pieces) == 0) MUSTER_TRY(Begin(nullptr));
  MUSTER_TRY(Update(FileItem::Phase::kOpen));
  const std::vector<FilePiece> pieces = item_.pieces;
  const std::string whole = piece_path_ + ".whole";
  // Done before taking the lock, since it takes a while. Pieces stay until the item records that
  // they are published; an earlier holder's piece is copied, since that holder may still be writing
  // to it.
  if (pieces.size() == 1 && pieces[0].path == piece_path_) {
    if (link(piece_path_.c_str(), whole.c_str()) != 0) return FileError("link", whole, errno);
  } else {
    MUSTER_TRY(JoinFiles(pieces, whole));
  }
  MUSTER_ASSIGN(const auto lock, state_->Acquire());
  MUSTER_TRY(CheckMine());
  MUSTER_TRY(PublishFile(whole, place_.output));
  FileItem done = item_;
  done.phase = phase;
  done.output = place_.output;
  done.pieces = {};
  MUSTER_TRY(state_->Store(place_.name, done));
  item_ = std::move(done);
  piece_ = nullptr;
  state_->RemovePieces(place_.name);
  return {};
}

}  // namespace muster::pipeline
