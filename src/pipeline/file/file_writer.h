#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/file/file_sink.h"

namespace muster::pipeline {

// A writer's file names.
struct FileWriterPlace {
  std::string name;    // of the item, safe as a file name
  std::string output;  // the published file
  bool has_header = true;
  Compression compression = Compression::kNone;
};

// Writes one item into its own piece, and publishes all pieces of the item as one file.
class FileWriter final : public Writer {
 public:
  // Takes the item over from its previous holder.
  static Result<std::unique_ptr<Writer>> Open(std::shared_ptr<FileSinkState> state,
                                              FileWriterPlace place,
                                              std::unique_ptr<FileEncoder> encoder,
                                              const Fence& fence, Env& env);
  ~FileWriter() override;

  const std::optional<Progress>& Known() const override { return known_; }
  bool Sealed() const override { return sealed_; }
  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override;
  bool RecordsRefusals(RefusalRecorder record) override;
  Status Flush() override;
  Result<std::optional<Progress>> Seal() override;
  Status Finish() override;

 private:
  FileWriter(std::shared_ptr<FileSinkState> state, FileWriterPlace place,
             std::unique_ptr<FileEncoder> encoder);
  Status Begin(const Batch* first);
  Status Update(FileItem::Phase phase);
  Status Publish(FileItem::Phase phase);
  Status CheckMine() const;

  const std::shared_ptr<FileSinkState> state_;
  const FileWriterPlace place_;
  const std::unique_ptr<FileEncoder> encoder_;
  FileItem item_;  // as last stored
  std::optional<Progress> known_;
  bool sealed_ = false;
  Progress progress_;
  bool begun_ = false;
  std::unique_ptr<FileOutput> piece_;  // null: nothing written yet
  std::string piece_path_;
  std::string scratch_;
  RefusalRecorder record_;
};

}  // namespace muster::pipeline
