# The test suites, one function each: suite_NAME CASES runs it and writes one line for each test to
# the file CASES: `passed NAME`, `failed NAME` or `skipped NAME`. Sourced by scripts/test, which
# runs them at the root of the checkout.

cores=$(nproc)

# run_case CASES NAME COMMAND...: a command that is one test.
run_case() {
  local cases=$1 name=$2 verdict=passed
  shift 2
  "$@" || verdict=failed
  echo "$verdict $name" >>"$cases"
}

# build_preset PRESET [TARGET...]
build_preset() {
  # The launcher builds in the same folder: one at a time.
  flock build/.lock bash -c '
    cmake --preset "$0" --log-level=WARNING >/dev/null && ninja -C "build/$0" "$@"' "$@"
}

# With more random bits than this in its addresses, a program finds ThreadSanitizer's shadow memory
# taken: such a host runs it without.
launch_prefix() {
  [[ $1 != tsan ]] || (($(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0) <= 28)) ||
    echo setarch -R
}

# run_ctest PRESET LABELS CASES [TEST...]: LABELS is a regular expression; with tests named, only
# those are built and run.
run_ctest() {
  local preset=$1 labels=$2 cases=$3 folder=build/$1 verdict=passed names
  shift 3
  names=$(IFS='|'; echo "$*")
  if ! build_preset "$preset" "$@"; then
    echo "failed the build of $preset" >"$cases"
    return
  fi
  # A test that dies leaves no results of its own: none of an earlier run may stand in for them.
  rm -rf "$folder/results" "$folder/ctest.xml"
  mkdir -p "$folder/results"
  $(launch_prefix "$preset") ctest --test-dir "$folder" -j "$cores" -L "^($labels)$" \
    -R "^(${names:-.*})$" --no-tests=error --output-on-failure --output-junit "$PWD/$folder/ctest.xml" || verdict=failed
  [[ ! -e $folder/ctest.xml ]] || awk -v folder="$folder/results" -f scripts/cases.awk \
    "$folder/ctest.xml" >"$cases"
  if [[ $verdict == failed ]] && ! grep -qs '^failed ' "$cases"; then
    echo "failed ctest, for a reason of its own (see above)" >>"$cases"
  fi
}

suite_unit() { run_ctest release unit "$1"; }
suite_contract() { run_ctest release contract "$1"; }
suite_sim() { run_ctest release sim "$1"; }
suite_e2e() { run_ctest release e2e "$1"; }
# The dashboard in a browser.
suite_web() {
  if build_preset release muster_program; then
    tests/web/run --cases "$1"
  else
    echo "failed the build of release" >"$1"
  fi
}
# A short run; docs/internals/lucene.md tells of long ones.
suite_fuzz() { run_case "$1" "the decoders of src/lucene" tests/fuzz/fuzz 15; }
# Not among those that run by default: three more servers to download.
suite_versions() {
  if ! scripts/fetch opensearch-1.3.20 elasticsearch-7.17.29 elasticsearch-8.19.21; then
    echo "failed the download of other servers" >"$1"
    return
  fi
  run_ctest release versions "$1"
}
suite_asan() { run_ctest asan 'unit|contract' "$1"; }
# What shares memory among threads; for the rest ThreadSanitizer would only take time.
suite_tsan() {
  run_ctest tsan 'unit|contract' "$1" base_tests http_tests js_tests postgres_copy_tests \
    store_tests store_contract postgres_store_tests sqlite_store_tests opensearch_store_tests \
    dynamodb_store_tests event_log_contract replica_tests read_model_contract replica_set_tests \
    pipeline_tests pipeline_file_tests opensearch_bulk postgres_pipeline_tests \
    sqlite_pipeline_tests sink_contract source_contract work_tests states_tests \
    sqlite_power_tests plan_tests serve_tests serve_security serve_live serve_beside
}

check_format() {
  find include src tests bench \( -name '*.h' -o -name '*.cc' \) -print0 |
    xargs -0 clang-format-16 --dry-run -Werror
}

check_tidy() { build_preset release && scripts/tidy; }

suite_lint() {
  run_case "$1" clang-format check_format
  run_case "$1" clang-tidy check_tidy
  run_case "$1" "tsc and prettier" web/build --check
}

# The simulator's traces must not depend on the build: an order that does is undefined behaviour,
# or something read that is not in the seed.
trace_hashes() { $(launch_prefix "$1") "build/$1/bin/muster" sim --seeds 1..20 --hash; }

suite_hashes() {
  local cases=$1 folder preset
  folder=$(mktemp -d)
  for preset in release asan; do
    if ! build_preset "$preset" || ! trace_hashes "$preset" >"$folder/$preset" ||
       (($(grep -cE '^[0-9]+ [0-9a-f]+$' "$folder/$preset") < 20)); then
      echo "failed trace hashes of 20 seeds in the $preset build" >>"$cases"
    elif diff -u "$folder/release" "$folder/$preset"; then
      echo "passed trace hashes of the $preset build" >>"$cases"
    else
      echo "failed trace hashes of the $preset build equal the release build's" >>"$cases"
    fi
  done
  rm -rf "$folder"
}
