# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts of tools/ and tests/: how they speak, show progress and build.

PROGRAM=$0

# One line about what happens next.
say() { printf '%s\n' "$*"; }

# A heading between the parts of a long run.
heading() {
  if [[ -t 1 && -z ${NO_COLOR:-} ]]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n== %s\n' "$*"; fi
}

# fail STATUS SENTENCE: ends the script.
fail() {
  local status=$1
  shift
  printf '%s: error: %s\n' "$PROGRAM" "$*" >&2
  exit "$status"
}

# Prints the seconds since START (a value of $SECONDS) as "3 min 05 s".
elapsed() {
  local seconds=$((SECONDS - $1))
  if ((seconds < 60)); then printf '%d s' "$seconds"; else printf '%d min %02d s' $((seconds / 60)) $((seconds % 60)); fi
}

# Reads "PERCENT TEXT" lines and shows them under LABEL: a bar on a terminal, else a line for every ten percent.
progress() {
  local label=$1 percent text filled shown=-10 columns
  columns=$(tput cols 2>/dev/null || echo 80)
  while read -r percent text; do
    if [[ -t 1 ]]; then
      filled=$((percent / 5))
      printf '\r\033[K%.*s' $((columns - 1)) "$(printf '%s [%-20s] %3d%% %s' "$label" "${BAR:0:filled}" "$percent" "$text")"
    elif ((percent >= shown + 10)); then
      shown=$((percent - percent % 10))
      printf '%s: %d%%\n' "$label" "$percent"
    fi
  done
  if [[ -t 1 ]]; then printf '\r\033[K'; fi
}
BAR='####################'

# build PRESET [TARGET...]: configures where needed, then builds; the whole log is build/PRESET/build.log.
build() {
  local preset=$1 started=$SECONDS
  shift
  local tree=build/$preset
  mkdir -p build
  if [[ ! -f $tree/build.ninja ]]; then
    say "Configuring $tree"
    cmake --preset "$preset" >"$tree.configure.log" 2>&1 ||
      { cat "$tree.configure.log" >&2; fail 1 "configuring $tree failed"; }
  fi
  NINJA_STATUS='[%f/%t] ' ninja -C "$tree" "$@" 2>&1 | tee "$tree/build.log" | ninja_percent | progress "Building $tree" ||
    fail 1 "the build failed: see $tree/build.log"
  if ! grep -q '^ninja: no work to do' "$tree/build.log"; then say "Built $tree in $(elapsed "$started")"; fi
}

# Turns ninja's "[12/300] what" into "4 what" and sends everything else, compilers' messages, to stderr.
ninja_percent() {
  awk '/^\[[0-9]+\/[0-9]+\] / { split(substr($1, 2), n, /[\/\]]/); $1 = ""; printf "%d%s\n", 100 * n[1] / n[2], $0; fflush(); next }
       /^ninja: (Entering directory|no work to do)/ { next }
       { print > "/dev/stderr" }'
}
