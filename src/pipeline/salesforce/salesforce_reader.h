#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/salesforce/salesforce_client.h"

namespace muster::pipeline {

// Where reading continues: a row in a page of a job's results.
struct SalesforcePosition {
  int64_t before = 0;   // rows of the whole object; makes positions sort
  std::string job;      // empty: start a new job
  std::string locator;  // empty: the first page
  int64_t row = 0;      // of that page

  std::string ToString() const;
  static Result<SalesforcePosition> Parse(const std::string& text);
};

// Reads the results of a completed query job, in pages of `page_rows`. `client` must outlive it.
std::unique_ptr<Reader> NewSalesforceReader(SalesforceClient& client, SalesforcePosition position,
                                            int64_t page_rows, std::stop_token stop);

}  // namespace muster::pipeline
