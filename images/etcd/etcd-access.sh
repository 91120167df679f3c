#!/bin/bash
# Manages who may use etcd. `add ID` gives the user ID, with the password on standard input, the keys below /tenantry/ID/ and no
# others. `adopt ID` makes a data directory that exists the first one of the cluster: its system identifier is the first line of the
# standard input, the cluster's settings are the second. `begun ID` prints `yes` if the cluster has created its database or is creating
# it, `adopted` if it got one that existed, and `no` otherwise. `remove ID` removes user, role and keys. `list` prints all keys and users.
# Each command may be repeated.
set -euo pipefail

export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=https://127.0.0.1:2379 ETCDCTL_CACERT=/run/secrets/ca.pem
ETCDCTL_PASSWORD=$(< /run/secrets/root-password)
export ETCDCTL_PASSWORD ETCDCTL_USER=root
command=${1:-}
id=${2:-}

fail() {
  echo "etcd-access: $*" >&2
  exit 1
}

# Runs etcdctl, and ignores the error that what it should do has been done.
ensure() {
  local accepted=$1 output
  shift
  output=$(etcdctl "$@" 2>&1) || [[ $output == *"$accepted"* ]] || fail "$1 $2: ${output: -300}"
}

must() {
  local output
  output=$(etcdctl "$@" 2>&1) || fail "$1 $2: ${output: -300}"
}

await_etcd() {
  local attempt
  for attempt in {1..60}; do
    etcdctl endpoint health > /dev/null 2>&1 && return
    sleep 0.5
  done
  fail "etcd is not healthy after $attempt attempts"
}

# Without access control, all clients that reach etcd would be allowed everything.
enable_access_control() {
  [[ $(etcdctl auth status) != *'Status: true'* ]] || return 0
  ensure 'already exists' user add root --interactive=false <<< "$ETCDCTL_PASSWORD"
  ensure 'already exists' role add root
  ensure 'already granted' user grant-role root root
  ensure 'already enabled' auth enable
}

add() {
  local password
  IFS= read -r password
  [[ -n $password ]] || fail 'the password is empty'
  await_etcd
  enable_access_control
  ensure 'already exists' role add "$id"
  must role grant-permission "$id" readwrite --prefix=true "/tenantry/$id/"
  ensure 'already exists' user add "$id" --interactive=false <<< "$password"
  must user passwd "$id" --interactive=false <<< "$password"
  ensure 'already granted' user grant-role "$id" "$id"
}

# With these keys, Patroni never creates an empty database for the cluster.
adopt() {
  local system_identifier settings
  IFS= read -r system_identifier
  IFS= read -r settings
  [[ $system_identifier =~ ^[0-9]+$ && -n $settings ]] || fail 'the system identifier or the settings are missing'
  await_etcd
  enable_access_control
  must put "/tenantry/$id/config" <<< "$settings"
  must put "/tenantry/$id/adopted" "$system_identifier"
  must put "/tenantry/$id/initialize" "$system_identifier"
}

exists() {
  local found
  found=$(etcdctl get --count-only --write-out=fields "$1") || fail "the keys of $id can't be read"
  [[ $found == *'"Count" : 1'* ]]
}

begun() {
  await_etcd
  enable_access_control
  if ! exists "/tenantry/$id/initialize"; then
    echo no
  elif exists "/tenantry/$id/adopted"; then
    echo adopted
  else
    echo yes
  fi
}

remove() {
  await_etcd
  enable_access_control
  ensure 'not found' user delete "$id"
  ensure 'not found' role delete "$id"
  etcdctl del --prefix "/tenantry/$id/" > /dev/null
}

list() {
  etcdctl get --prefix --keys-only / | sed '/^$/d'
  etcdctl user list
}

case $command in
  list) list ;;
  add | adopt | begun | remove)
    [[ $id =~ ^(t_[0-9a-f]{20}|region-[a-z][a-z0-9-]*-[0-9a-f]{8}|control-database)$ ]] ||
      fail "\"${id:0:100}\" is not the ID of a tenant, nor that of a region's stack"
    "$command"
    ;;
  *) fail "unknown command \"${command:0:100}\"; allowed: add, adopt, begun, remove, list" ;;
esac
