#!/bin/bash
# Starts Patroni, which runs Postgres, or HAProxy in front of the members. Patroni's configuration is a secret, because it contains
# passwords.
set -euo pipefail

volume=/var/lib/postgresql
configuration=/run/secrets/patroni.yml

fail() {
  echo "cluster member: $*" >&2
  exit 1
}

# Process IDs have no meaning in another container, so Postgres' own lock file does not prevent a second server. This lock
# does: all processes inherit it, and the kernel releases it with the last one.
run_member() {
  [[ -w $volume ]] || fail "$volume can't be written by user $(id -u)"
  [[ -r $configuration ]] || fail "$configuration can't be read"
  exec 9> "$volume/lock"
  flock --wait 10 9 || fail "another container runs on this volume"
  rm -f "$PGDATA/postmaster.pid"
  mkdir -p "$(dirname "$PGDATA")"
  exec patroni "$configuration"
}

case ${1:-} in
  member) run_member ;;
  router) exec haproxy -db -f /usr/share/tenantry/haproxy.cfg ;;
  *) fail "unknown command \"${1:0:100}\"; allowed: member, router" ;;
esac
