#!/usr/bin/env bash
# Make the hub and managed clusters sites of one Skupper 2 network, and link each of them to the hub.
#   HUB=hub01 WORKERS="worker01 worker02" CONTEXT_PREFIX=kind- NAMESPACE=dynamic-scoring ./link.sh
# Skupper's controller has to run on each of them. A cluster that has a link keeps it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

HUB=${HUB:-hub01}
WORKERS=${WORKERS:-worker01 worker02}
CONTEXT_PREFIX=${CONTEXT_PREFIX-kind-}
NAMESPACE=${NAMESPACE:-dynamic-scoring}
TIMEOUT=${TIMEOUT:-3m}
GRANT=accessgrant.skupper.io/managed-clusters

on() { # CLUSTER ARGUMENT...: kubectl on a cluster
  kubectl --context "$CONTEXT_PREFIX$1" --namespace "$NAMESPACE" "${@:2}"
}

create_site() { # CLUSTER FILE
  on "$1" get namespace "$NAMESPACE" >/dev/null 2>&1 || on "$1" create namespace "$NAMESPACE"
  CLUSTER_NAME=$1 envsubst <"$2" | on "$1" apply -f -
}

link() { # CLUSTER
  if [ -n "$(on "$1" get links.skupper.io -o name)" ]; then
    echo "$1 has a link already"
    return
  fi
  on "$HUB" get "$GRANT" -o json |
    jq --arg name "$HUB" '{apiVersion, kind: "AccessToken", metadata: {name: $name},
      spec: {url: .status.url, code: .status.code, ca: .status.ca}}' |
    on "$1" apply -f -
  on "$1" wait --for=condition=Redeemed "accesstoken.skupper.io/$HUB" --timeout="$TIMEOUT"
}

create_site "$HUB" site-hub.yaml
on "$HUB" wait --for=condition=Ready "site.skupper.io/$HUB" --timeout="$TIMEOUT"
on "$HUB" apply -f grant.yaml
on "$HUB" wait --for=condition=Ready "$GRANT" --timeout="$TIMEOUT"
for worker in $WORKERS; do
  create_site "$worker" site-managed-cluster.yaml
  link "$worker"
done
on "$HUB" delete "$GRANT"
for worker in $WORKERS; do
  on "$worker" wait --for=condition=Ready links.skupper.io --all --timeout="$TIMEOUT"
done
