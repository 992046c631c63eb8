#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a bare Debian machine needs nothing but the two commands of README.md.
set -euo pipefail
ARGUMENTS=("$@")
REPOSITORY=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
# shellcheck source=tools/support/console.sh
source "$REPOSITORY/tools/support/console.sh"

usage() {
  cat <<'U'
tests/fresh_machine.sh [--user] [--keep] SUITE [COMMAND...]

Makes a Debian root for SUITE (bookworm or trixie) with debootstrap, clones the last commit of this repository
into it, and runs tools/demo and tools/test there (or each COMMAND instead). From the host come only its package
sources, with the suite's name changed, its certificates and its proxies. Needs root and debootstrap.

  --user   run the commands as a user with sudo, not as root
  --keep   leave the root in place for a look; the next run replaces it

The root lies in $FORGE_FRESH_ROOT/SUITE (default: ~/.cache/forge/fresh; about 4 GB while it runs), the logs in
build/fresh.
U
}

as_user=no keep=no
while [[ ${1:-} == -* ]]; do
  case $1 in
    --user) as_user=yes ;;
    --keep) keep=yes ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && fail 2 "unknown option '$1'" ;;
  esac
  shift
done
suite=${1:-}
case $suite in
  bookworm | trixie) shift ;;
  *) usage >&2 && fail 2 "SUITE is bookworm or trixie, not '$suite'" ;;
esac
commands=("$@")
if ((${#commands[@]} == 0)); then commands=(tools/demo tools/test); fi
((EUID == 0)) || fail 1 "making a root needs root"
command -v debootstrap >/dev/null || fail 1 "debootstrap is not installed: apt-get install debootstrap"

# Namespaces of its own: no mount and no process of the root outlives this script, however it ends.
if [[ -z ${FORGE_FRESH_INSIDE:-} ]]; then
  FORGE_FRESH_INSIDE=1 exec unshare --mount --pid --fork --kill-child --propagation private "$0" "${ARGUMENTS[@]}"
fi

root=${FORGE_FRESH_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/forge/fresh}/$suite
logs=$REPOSITORY/build/fresh
host_suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

# The first archive that the host's package sources name.
mirror() {
  sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null
  sed -n 's/^deb .*\(https\{0,1\}:[^ ]*\).*/\1/p' /etc/apt/sources.list 2>/dev/null
}

# Gives the root the host's package sources, certificates and name resolution.
copy_host_settings() {
  local file
  rm -f "$root/etc/apt/sources.list"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    if [[ -f $file ]]; then sed "s/\b$host_suite\b/$suite/g" "$file" >"$root$file"; fi
  done
  apt-config dump --format '%f "%v";%n' Acquire::http::Proxy Acquire::https::Proxy >"$root/etc/apt/apt.conf.d/90proxy"
  mkdir -p "$root/usr/local/share/ca-certificates" "$root/etc/ssl/certs"
  cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

# Runs a shell command in the root, in the clone, with a bare environment.
inside() {
  local user=(--userspec=root:root) home=/root settings=() name
  if [[ $as_user == yes ]]; then user=(--userspec=forge:forge) home=/home/forge; fi
  for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_EXTRA_INDEX_URL; do
    if [[ -n ${!name:-} ]]; then settings+=("$name=${!name}"); fi
  done
  chroot "${user[@]}" "$root" /usr/bin/env -i HOME=$home USER="${home##*/}" LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" \
    bash -c "cd $home/forge && $1"
}

add_user() {
  chroot "$root" bash -c 'apt-get -qq update && apt-get -qq -y install --no-install-recommends sudo >/dev/null &&
    useradd --create-home --shell /bin/bash forge && echo "forge ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/forge'
}

remove_root() {
  umount "$root/dev/shm" "$root/proc" "$root/sys" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}

mkdir -p "$logs" "$(dirname "$root")"
remove_root
if [[ $keep == no ]]; then trap remove_root EXIT; fi

started=$SECONDS
say "Making a $suite root in $root"
debootstrap --variant=minbase "$suite" "$root" "$(mirror | head -n 1)" >"$logs/$suite-debootstrap.log" 2>&1 ||
  { tail "$logs/$suite-debootstrap.log" >&2; fail 1 "debootstrap failed"; }
copy_host_settings
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/dev/shm"
home=/root
if [[ $as_user == yes ]]; then add_user && home=/home/forge; fi
git clone --quiet --no-local "$REPOSITORY" "$root$home/forge"
chown -R --reference="$root$home" "$root$home/forge"
say "Made in $(elapsed "$started"); the clone is at $(git -C "$root$home/forge" log -1 --format='%h (%s)')"

number=0 status=0
for command in "${commands[@]}"; do
  number=$((number + 1))
  log=$logs/$suite-$number.log
  started=$SECONDS
  heading "$suite: $command"
  if inside "$command" </dev/null >"$log" 2>&1; then result=passed; else result="FAILED ($?)" status=1; fi
  grep -E '^(Installed|Built) .* in ' "$log" || true
  say "..."
  tail -n 40 "$log"
  say "$suite: $command: $result in $(elapsed "$started")"
  if ((status != 0)); then break; fi
done
exit $status
