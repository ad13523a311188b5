# shellcheck shell=bash
# Stand for the programs of the guides. Each writes what it was called with to $CALLS, and prints what the next step reads.
# $place is the line of the command; $1 of `call` is what came by standard input.
set -eu -o pipefail
place=start
trap '[ $? -eq 0 ] || printf "%s" "$place" >"$FAILED"' EXIT

call() {
  local stdin=$1
  shift
  printf '%s\0' "$place" "$stdin" "$#" "$@" >>"$CALLS"
}

standard_input() { # ARGUMENT...: sets `stdin` to what was piped, if an argument says that it is read
  stdin=
  case " $* " in
    *' - '* | *' @- '*) IFS= read -r -d '' stdin || true ;;
  esac
}

make() { call '' make "$@"; }
kind() { call '' kind "$@"; }
helm() { call '' helm "$@"; }
dsf() {
  [[ ":$PATH:" == *"/.venv/bin:"* ]] || { echo 'dsf: not on PATH' >&2 && return 127; }
  call '' dsf "$@"
}
engine() { # PROGRAM ARGUMENT...
  local before=
  for word in "$@"; do
    [[ $before != --env ]] || : "${!word}"
    before=$word
  done
  call '' "$@"
  [[ $2 != inspect ]] || echo 10.89.0.9
}
podman() { engine podman "$@"; }
docker() { engine docker "$@"; }
clusteradm() {
  call '' clusteradm "$@"
  [[ $1 != get ]] ||
    echo 'clusteradm join --hub-token a-token --hub-apiserver https://hub:6443 --cluster-name <cluster_name>'
}
kubectl() {
  local stdin
  standard_input "$@"
  call "$stdin" kubectl "$@"
  [[ $1 == exec ]] || echo 10.89.0.3
}
curl() {
  local stdin
  standard_input "$@"
  call "$stdin" curl "$@"
  echo '{}'
}
jq() {
  [[ -t 0 || ${!#} == *.json ]] || cat >/dev/null
  call '' jq "$@"
  echo '{}'
}
envsubst() { # What has no value is marked: the real program would leave nothing of it.
  local text name value names
  IFS= read -r -d '' text || true
  names=${1:-}
  if [[ -z $names ]]; then
    # shellcheck disable=SC2016
    names=$(grep -o '\${[A-Za-z_]*}' <<<"$text" | sort -u)
  fi
  for name in ${names//[^A-Za-z_]/ }; do
    value="<no value of $name>"
    [[ $(declare -p "$name" 2>/dev/null) != 'declare -'*x* ]] || value=${!name}
    text=${text//"\${$name}"/$value}
  done
  printf '%s' "$text"
}
