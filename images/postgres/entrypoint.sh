#!/bin/bash
# Starts Postgres on a whole data directory, or ends with a clear error. Arguments are further settings of the server.
set -euo pipefail

version=17
volume=/var/lib/postgresql
template=/usr/share/tenantry/template
superuser_password=/run/secrets/superuser-password
hba=/usr/share/tenantry/pg_hba.conf

fail() {
  echo "postgres: $*" >&2
  exit 1
}

# Process ids mean nothing between containers, so Postgres' own lock file does not keep a second server out. This
# lock does: the server inherits it, and the kernel lets go of it with the last process.
hold_volume() {
  [[ -w $volume ]] || fail "$volume can't be written by user $(id -u)"
  exec 9> "$volume/lock"
  flock --wait 10 9 || fail "another container runs on this volume"
  rm -f "$PGDATA/postmaster.pid"
}

# A kill at any point leaves either nothing under the final name or all of it, on disk.
make_data_directory() {
  local parent making
  parent=$(dirname "$PGDATA")
  making=$PGDATA.making
  mkdir -p "$parent"
  rm -rf "$making"
  cp -a "$template" "$making"
  initdb --sync-only --pgdata="$making" > /dev/null
  mv --no-target-directory "$making" "$PGDATA"
  sync "$parent" "$volume"
}

check_data_directory() {
  local found
  if [[ -e $PGDATA/PG_VERSION ]]; then
    found=$(< "$PGDATA/PG_VERSION")
    [[ $found == "$version" ]] || fail "the data directory is of Postgres $found; this image is $version"
    return
  fi
  [[ -z $(ls -A "$PGDATA" 2> /dev/null) ]] || fail "$PGDATA holds files, but no PG_VERSION: not touched"
  for found in "$volume"/PG_VERSION "$volume"/*/PG_VERSION "$volume"/*/data/PG_VERSION; do
    [[ ! -e $found ]] || fail "the volume holds a data directory of Postgres $(< "$found") at $(dirname "$found"); this image is $version"
  done
  make_data_directory
}

# A server without sockets sets it, so that the old one never works once TCP is open.
set_superuser_password() {
  local password
  password=$(< "$superuser_password")
  [[ -n $password && $password != *[[:cntrl:]]* ]] || fail "$superuser_password must hold one line"
  printf "alter role postgres password '%s'\n" "${password//\'/\'\'}" |
    postgres --single -c exit_on_error=true -c log_min_error_statement=panic -c password_encryption=scram-sha-256 postgres > /dev/null ||
    fail "the superuser's password could not be set"
}

hold_volume
check_data_directory
if [[ -e $superuser_password ]]; then
  set_superuser_password
  hba=/usr/share/tenantry/pg_hba.superuser.conf
fi

# Ours come last, because the last of a name holds.
exec postgres "$@" \
  -c listen_addresses='*' -c port=5432 -c unix_socket_directories=/run/postgresql \
  -c hba_file="$hba" -c password_encryption=scram-sha-256 -c jit=off -c logging_collector=off
