#!/bin/bash
# Manages who may use etcd. `add ID` gives the user ID, with the password on standard input, the keys below /tenantry/ID/ and no
# others. `adopt ID` makes a data directory that exists the first one of the cluster: its system identifier is the first line of the
# standard input, the cluster's settings are the second. `begun ID` prints `yes` if the cluster has created its database, `creating` if
# a member has begun to and has not ended it, `adopted` if the cluster got one that existed, and `no` otherwise. `remove ID` removes
# user, role and keys. `list` prints all keys and users. `enable` enables access control. `replace NAME` gives another member, whose
# data is lost, a new ID: it then starts with an empty volume (etcd-start). It ends with 3 if this member is in no cluster. Each command
# may be repeated.
set -euo pipefail

export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=https://127.0.0.1:2379 ETCDCTL_CACERT=/run/secrets/ca.pem
ETCDCTL_PASSWORD=$(< /run/secrets/root-password)
export ETCDCTL_PASSWORD ETCDCTL_USER=root
readonly unfinished=${ETCD_DATA_DIR%/*}/unfinished
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

# A member that is not in its cluster yet serves no clients, but may be founding one (etcd-start). An empty one waits for that.
await_etcd() {
  local attempt
  for attempt in {1..60}; do
    etcdctl endpoint health > /dev/null 2>&1 && [[ ! -e $unfinished ]] && return
    ((attempt < 10)) || [[ -e $ETCD_DATA_DIR ]] || fail 'the member is empty, and waits for the others'
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
  local found
  found=$(etcdctl get --write-out=fields "/tenantry/$id/initialize") || fail "the keys of $id can't be read"
  if [[ $found != *'"Count" : 1'* ]]; then
    echo no
  elif exists "/tenantry/$id/adopted"; then
    echo adopted
  elif [[ $found == *'"Value" : ""'* ]]; then
    # Patroni writes the identifier of the database when it is complete.
    echo creating
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

# Repeats a change of the members that etcd rejects until the others have been connected for 5 s.
change_members() {
  local attempt output
  for attempt in {1..20}; do
    output=$(etcdctl member "$@" 2>&1) && return
    [[ $output == *'unhealthy cluster'* ]] || break
    sleep 1
  done
  fail "member $1 after $attempt attempts: ${output: -300}"
}

# etcd rejects a new member while the former one is known, and needs a majority of the others.
replace() {
  local url members former
  [[ $id != "$ETCD_NAME" ]] || fail 'a member does not replace itself: run the command in another one'
  url=$(tr , '\n' <<< "$ETCD_INITIAL_CLUSTER" | sed -n "s/^$id=//p")
  [[ -n $url ]] || fail "\"${id:0:100}\" is not the name of a member"
  if [[ -e $unfinished || ! -e $ETCD_DATA_DIR ]]; then
    echo 'etcd-access: this member is in no cluster' >&2
    exit 3
  fi
  await_etcd
  enable_access_control
  ! ETCDCTL_ENDPOINTS=${url%:*}:2379 etcdctl --dial-timeout=2s --command-timeout=5s endpoint health > /dev/null 2>&1 ||
    fail "the member $id is healthy, so it is not replaced"
  members=$(etcdctl member list) || fail 'the members are unknown'
  former=$(awk -F ', ' -v url="$url" '$4 == url { print $1 }' <<< "$members")
  [[ -z $former ]] || change_members remove "$former"
  change_members add "$id" --peer-urls="$url"
}

list() {
  etcdctl get --prefix --keys-only / | sed '/^$/d'
  etcdctl user list
}

case $command in
  list) list ;;
  enable) enable_access_control ;;
  replace) replace ;;
  add | adopt | begun | remove)
    [[ $id =~ ^(t_[0-9a-f]{20}|region-[a-z][a-z0-9-]*-[0-9a-f]{8}|control-database)$ ]] ||
      fail "\"${id:0:100}\" is not the ID of a tenant, nor that of a region's stack"
    "$command"
    ;;
  *) fail "unknown command \"${command:0:100}\"; allowed: add, adopt, begun, remove, list, enable, replace" ;;
esac
