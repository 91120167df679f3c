#!/bin/bash
# Starts Postgres on a complete data directory, or ends with a clear error. Arguments are additional settings of the server.
# TENANTRY_VOLUME is the name of the volume. If it is set, an empty volume becomes a data directory only if it contains the file
# `initialize` with that name, from the control plane. Docker creates a missing volume by itself, which must not become a database.
set -euo pipefail

version=17
volume=/var/lib/postgresql
template=/usr/share/tenantry/template
superuser_password=/run/secrets/superuser-password
hba=/usr/share/tenantry/pg_hba.conf
volume_name=${TENANTRY_VOLUME:-}
owner=$volume/owner
permission=$volume/initialize
password_mark=$PGDATA/tenantry.superuser-password

fail() {
  echo "postgres: $*" >&2
  exit 1
}

# Process IDs have no meaning in another container, so Postgres' own lock file does not prevent a second server. This lock
# does: the server inherits it, and the kernel releases it with the last process.
hold_volume() {
  [[ -w $volume ]] || fail "$volume can't be written by user $(id -u)"
  exec 9> "$volume/lock"
  flock --wait 10 9 || fail "another container runs on this volume"
  rm -f "$PGDATA/postmaster.pid"
}

check_owner() {
  local found
  [[ -n $volume_name && -e $owner ]] || return 0
  found=$(< "$owner")
  [[ $found == "$volume_name" ]] || fail "the volume is \"${found:0:100}\" and not \"$volume_name\": not touched"
}

check_permission() {
  local found=
  [[ -n $volume_name ]] || return 0
  [[ ! -e $permission ]] || found=$(< "$permission")
  [[ $found == "$volume_name" ]] ||
    fail "the volume \"$volume_name\" holds no data directory, and the control plane has not permitted to create one: no empty database is started"
}

# The permission is removed only when the data directory is on disk. A volume from an earlier version gets its owner here.
mark_owner() {
  [[ -n $volume_name ]] || return 0
  if [[ ! -e $owner ]]; then
    echo "$volume_name" > "$owner.new"
    sync "$owner.new"
    mv --no-target-directory "$owner.new" "$owner"
  fi
  rm -f "$permission"
  sync "$volume"
}

# After a kill at any point, the final name does not exist, or the complete directory is on disk.
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
  check_permission
  make_data_directory
}

# A server without sockets sets the password, so that the old one never works over TCP. Each content of the file is set once:
# afterwards, the control plane may have replaced the password, and the file of a container stays as it is. The first line is the
# password; former ones may follow.
set_superuser_password() {
  local password fingerprint
  IFS= read -r password < "$superuser_password" || [[ -n $password ]] || fail "$superuser_password must begin with a line"
  [[ -n $password && $password != *[[:cntrl:]]* ]] || fail "$superuser_password must begin with a line"
  fingerprint=$(printf '%s' "$password" | sha256sum)
  [[ ! -e $password_mark || $(< "$password_mark") != "$fingerprint" ]] || return 0
  printf "alter role postgres password '%s'\n" "${password//\'/\'\'}" |
    postgres --single -c exit_on_error=true -c log_min_error_statement=panic -c password_encryption=scram-sha-256 postgres > /dev/null ||
    fail "the superuser's password could not be set"
  echo "$fingerprint" > "$password_mark.new"
  sync "$password_mark.new"
  mv --no-target-directory "$password_mark.new" "$password_mark"
  sync "$PGDATA"
}

check_owner
hold_volume
check_data_directory
mark_owner
if [[ -e $superuser_password ]]; then
  set_superuser_password
  hba=/usr/share/tenantry/pg_hba.superuser.conf
fi

# These settings come last, because the last value of a setting applies.
exec postgres "$@" \
  -c listen_addresses='*' -c port=5432 -c unix_socket_directories=/run/postgresql \
  -c hba_file="$hba" -c password_encryption=scram-sha-256 -c jit=off -c logging_collector=off
