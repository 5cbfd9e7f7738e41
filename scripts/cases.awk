# Reads ctest's JUnit file and prints one line for each test: `passed NAME`, `failed NAME` or `skipped
# NAME`. Where a GoogleTest executable left its own results in FOLDER/CTEST.xml, its tests are
# counted instead of the executable.

function attribute(line, name) {
  if (!match(line, " " name "=\"[^\"]*\"")) return ""
  return substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

# A test case ends at its own closing, or at the next one: only a failed one has children.
function finish_case() {
  if (pending != "") print outcome, pending
  if (outcome == "failed") failures++
  pending = ""
}

# Counts the tests of one executable; false where it left no results.
function print_cases(name,    path, line) {
  path = folder "/" name ".xml"
  failures = 0
  pending = ""
  if ((getline line < path) <= 0) return 0
  do {
    if (line ~ /<testcase /) {
      finish_case()
      pending = name ": " attribute(line, "classname") "." attribute(line, "name")
      # Also disabled by its name is not passed.
      outcome = attribute(line, "result") == "completed" ? "passed" : "skipped"
    } else if (line ~ /<failure/) {
      outcome = "failed"
    }
  } while ((getline line < path) > 0)
  finish_case()
  close(path)
  return 1
}

/<testcase / {
  name = attribute($0, "name")
  status = attribute($0, "status")
  counted = print_cases(name)
  # It may have passed all its tests and died after them: of a leak, a sanitizer, a time-out.
  if (status == "fail" && !(counted && failures)) print "failed", name
  else if (status != "run" && status != "fail") print "skipped", name
  else if (status == "run" && !counted) print "passed", name
}
