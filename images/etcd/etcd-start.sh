#!/bin/bash
# Starts a member of etcd with etcd's variables ETCD_…. One with data continues. An empty one enters a cluster only with a new ID:
# - If other members have a cluster, it waits until `etcd-access replace NAME` in one of them has replaced the former member.
# - Otherwise, the first member founds a cluster alone and adds the others, which are empty, too. Until all members are in it, it
#   serves no clients. Its ID is random, so it never mixes with a former cluster. If another member has one, the new one is given up.
# Until it is in its cluster, a member has the file `unfinished` next to its data: `joining` or `founding`, and its ID.
set -euo pipefail

readonly directory=${ETCD_DATA_DIR%/*} own_url=$ETCD_INITIAL_ADVERTISE_PEER_URLS
readonly unfinished=$directory/unfinished former=$directory/former
readonly here=https://127.0.0.1:2379 client_port=2379 founding_port=2382
export ETCDCTL_API=3 ETCDCTL_CACERT=/run/secrets/ca.pem ETCDCTL_USER=root
ETCDCTL_PASSWORD=$(< /run/secrets/root-password)
export ETCDCTL_PASSWORD

names=() urls=() others=()
for entry in ${ETCD_INITIAL_CLUSTER//,/ }; do
  url=${entry#*=}
  names+=("${entry%%=*}")
  urls+=("$url")
  [[ $url == "$own_url" ]] || others+=("${url%:*}:$client_port")
done
readonly names urls others
is_founder() { [[ ${urls[0]} == "$own_url" ]]; }

report() { echo "etcd-start: $*" >&2; }

has_data() { compgen -G "$ETCD_DATA_DIR/member/wal/*.wal" > /dev/null; }

is_founding() { [[ -e $unfinished && $(< "$unfinished") == founding* ]]; }

# Prints the members of the cluster of an endpoint. It fails if that has no majority.
members_at() {
  local address=${1#https://}
  # etcdctl does not end before its timeout when the port is closed.
  [[ $1 == "$here" ]] || timeout 2 bash -c ": < /dev/tcp/${address%:*}/${address##*:}" 2> /dev/null || return
  etcdctl --endpoints="$1" --dial-timeout=2s --command-timeout=4s member list 2> /dev/null
}

# Prints ID, state (`started` or `unstarted`) and `true` for a learner, of the member of a list that has the URL.
member_with() {
  awk -F ', ' -v url="$1" '$4 == url { print $1, $2, $6 }' <<< "$2"
}

note() {
  echo "$*" > "$unfinished.new"
  sync "$unfinished.new"
  mv "$unfinished.new" "$unfinished"
}

# The data is moved first, so that no part of it is ever started.
clear_data() {
  rm -rf "$former"
  [[ ! -e $ETCD_DATA_DIR ]] || mv "$ETCD_DATA_DIR" "$former"
  rm -rf "$former" "$unfinished"
}

# Waits until this empty member has an ID. Sets `first_settings` for its first start.
enter_cluster() {
  local endpoint list entry mode known round
  for ((round = 0; ; round++)); do
    known=0
    for endpoint in "${others[@]}" "${urls[0]%:*}:$founding_port"; do
      list=$(members_at "$endpoint") || continue
      known=1
      entry=$(member_with "$own_url" "$list")
      [[ $entry == *' unstarted '* ]] || continue
      mode=joining
      [[ $endpoint != *":$founding_port" ]] || mode=founding
      note "$mode ${entry%% *}"
      # etcd compares the URLs with those of the cluster. A member that has not started has no name there.
      list=$(awk -F ', ' -v url="$own_url" -v name="$ETCD_NAME" \
        '{ print ($4 == url ? name : $3 == "" ? "unstarted-" NR : $3) "=" $4 }' <<< "$list")
      first_settings=("ETCD_INITIAL_CLUSTER=${list//$'\n'/,}" ETCD_INITIAL_CLUSTER_STATE=existing)
      return
    done
    if ((known == 0)) && is_founder; then
      note founding
      first_settings=(
        "ETCD_INITIAL_CLUSTER=$ETCD_NAME=$own_url"
        ETCD_INITIAL_CLUSTER_STATE=new
        "ETCD_INITIAL_CLUSTER_TOKEN=$(< /proc/sys/kernel/random/uuid)"
      )
      return
    fi
    if ((round % 20 == 3)); then
      if ((known)); then
        report "The volume of $ETCD_NAME is empty, and the other members have a cluster. If the member's data is lost, run" \
          "\"etcd-access replace $ETCD_NAME\" in a container of another member."
      else
        report "The volume of $ETCD_NAME is empty, and no other member has a cluster with a majority. A new one begins when all run."
      fi
    fi
    sleep $((known ? 3 : 1))
  done
}

# Whether another member serves a cluster without a member of this ID. A cluster that is only being founded proves nothing.
is_unknown() {
  local id=$1 endpoint list
  for endpoint in "${others[@]}"; do
    list=$(members_at "$endpoint") || continue
    [[ -n $id && $'\n'$list == *$'\n'"$id, "* ]] || return 0
  done
  return 1
}

# Takes the next step from a cluster of the founder alone to one of all members. A learner does not count for the majority.
add_next() {
  local list=$1 at entry
  etcd-access enable || return 0
  for at in "${!urls[@]}"; do
    entry=$(member_with "${urls[at]}" "$list")
    [[ $entry != *' started false' ]] || continue
    if [[ -z $entry ]]; then
      etcdctl --endpoints=$here member add "${names[at]}" --learner --peer-urls="${urls[at]}" > /dev/null 2>&1 || true
    elif [[ $entry == *' started true' ]]; then
      etcdctl --endpoints=$here member promote "${entry%% *}" > /dev/null 2>&1 || true
    fi
    return
  done
}

# Waits until a member that starts for the first time is in its cluster. It ends with 3 if it never will be.
finish() {
  local mode id list
  read -r mode id < "$unfinished" || true
  while sleep 0.5; do
    ! is_unknown "$id" || return 3
    if [[ $mode == joining ]]; then
      etcdctl --endpoints=$here endpoint health > /dev/null 2>&1 || continue
      break
    fi
    list=$(members_at $here) || continue
    if [[ -z $id ]]; then
      id=$(member_with "$own_url" "$list")
      id=${id%% *}
      note "founding $id"
    fi
    ! is_founder || add_next "$list"
    (($(grep -c ', started, .*, false$' <<< "$list") < ${#urls[@]})) || break
  done
  rm "$unfinished"
}

stopping=
server=
stop() {
  stopping=yes
  [[ -n $server ]] || exit 143
  kill -TERM "$server" 2> /dev/null || true
}
trap stop TERM INT

# Waits for the end of a process, whatever signals arrive. Sets `code`.
await_end() {
  while true; do
    code=0
    wait "$1" || code=$?
    kill -0 "$1" 2> /dev/null || return 0
  done
}

# etcd inherits the lock, so no data is cleared while another one uses it.
exec 9> "$directory/lock"
flock --wait 10 9 || {
  report 'Another container uses the volume.'
  exit 1
}
first_settings=()
if ! has_data; then
  clear_data
  enter_cluster
fi
settings=("${first_settings[@]}")
is_new=no
if is_founding; then
  is_new=yes
  # A cluster that is not in use may add one member right after the other.
  settings+=("ETCD_LISTEN_CLIENT_URLS=$here,${own_url%:*}:$founding_port" ETCD_STRICT_RECONFIG_CHECK=false)
fi
env "${settings[@]}" /usr/bin/etcd &
server=$!
result=
if [[ -e $unfinished ]]; then
  (
    trap - TERM INT
    result=0
    finish || result=$?
    [[ $result == 0 && $is_new == no ]] || kill -TERM "$server" 2> /dev/null || true
    exit "$result"
  ) &
  finisher=$!
  await_end "$server"
  ended=$code
  kill "$finisher" 2> /dev/null || true
  await_end "$finisher"
  result=$code code=$ended
else
  await_end "$server"
fi
[[ -z $stopping ]] || exit "$code"
# etcd ends with 0 by itself only when the cluster has removed the member.
if [[ $result == 3 || ($code == 0 && -e $unfinished) ]]; then
  report 'The cluster does not know this new member any more. The member begins again.'
  clear_data
  exec "$0"
fi
# The cluster is complete. It serves clients from now on.
[[ $result != 0 || $is_new == no ]] || exec "$0"
if [[ $code == 0 ]]; then
  report 'The cluster has replaced this member by a new one, so the data in this volume is of no use. Remove container and volume.'
  sleep 30 &
  server=$!
  await_end "$server"
fi
exit 1
