#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lucene/doc_set_cursor.h"
#include "lucene/doc_values_meta.h"
#include "lucene/indexed_value.h"
#include "lucene/segment_files.h"
#include "lucene/term_dictionary.h"

namespace muster::lucene {

// Numbers by their place.
class NumberColumn {
 public:
  NumberColumn(NumbersLocation location, FileWindow window, ByteOrder order)
      : location_(std::move(location)), window_(std::move(window)), order_(order) {}

  Result<int64_t> At(uint64_t place);

 private:
  Status SeekBlock(uint64_t block);

  NumbersLocation location_;
  FileWindow window_;
  ByteOrder order_;
  // The current block, if numbers are in blocks.
  std::optional<uint64_t> block_ = {};
  uint64_t next_ = 0;  // where the next one starts
  uint64_t start_ = 0;
  uint32_t bits_ = 0;
  int64_t min_ = 0;
};

// The doc values of one field of a segment. Cheap if documents are asked for in order. One thread
// at a time; refers to the segment's directory.
class DocValues {
 public:
  // Appends the values that a document has: in ascending order, terms without duplicates.
  Status Read(uint32_t doc, std::vector<IndexedValue>& values);

 private:
  friend class SegmentDocValues;
  struct Addresses {
    DirectMonotonic numbers;
    FileWindow window;
  };
  DocValues(DocSetCursor docs, NumberColumn numbers, ByteOrder order)
      : docs_(std::move(docs)), numbers_(std::move(numbers)), order_(order) {}

  DocSetCursor docs_;
  NumberColumn numbers_;
  ByteOrder order_;
  std::optional<Addresses> addresses_ = {};
  std::optional<TermDictionary> terms_ = {};
};

// Opens the doc values of a segment's fields: numeric and sorted ones of Lucene 7 to 10.
class SegmentDocValues {
 public:
  // Refers to both.
  SegmentDocValues(const SegmentFiles& files, const std::vector<FieldInfo>& fields)
      : files_(files), fields_(fields) {}

  // None: the segment has no values of this field. kIncompatible, with its name: a format that is
  // not understood. The whole file is read once, to check its CRC.
  Result<std::unique_ptr<DocValues>> Open(const FieldInfo& field);

 private:
  struct File {
    ByteOrder order;
    std::map<uint32_t, DocValuesEntry> entries;
    ShardFileView data;
  };
  Result<const File*> FileOf(const std::string& stem);
  Result<std::unique_ptr<DocValues>> OpenEntry(const File& file, const DocValuesEntry& entry);
  // How much of a dictionary to read at once.
  uint64_t PieceOfTerms(const TermsLocation& terms);

  const SegmentFiles& files_;
  const std::vector<FieldInfo>& fields_;
  std::map<std::string, File> opened_;
  uint64_t terms_in_memory_ = 0;
};

}  // namespace muster::lucene
