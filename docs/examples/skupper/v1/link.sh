#!/usr/bin/env bash
# Make the hub and managed clusters sites of one Skupper 1 network, and link each of them to the hub.
#   HUB_NODE_IP=10.89.0.2 HUB=hub01 WORKERS="worker01 worker02" CONTEXT_PREFIX=kind- \
#     NAMESPACE=dynamic-scoring ./link.sh
# Skupper's site controller has to run on each of them. A cluster that has a token keeps it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export HUB_NODE_IP=${HUB_NODE_IP:?address of the hub node that managed clusters reach}
HUB=${HUB:-hub01}
WORKERS=${WORKERS:-worker01 worker02}
CONTEXT_PREFIX=${CONTEXT_PREFIX-kind-}
NAMESPACE=${NAMESPACE:-dynamic-scoring}
TIMEOUT=${TIMEOUT:-3m}

on() { # CLUSTER ARGUMENT...: kubectl on a cluster
  kubectl --context "$CONTEXT_PREFIX$1" --namespace "$NAMESPACE" "${@:2}"
}

fill() { # CLUSTER FILE: the file with the names filled in
  CLUSTER_NAME=$1 envsubst <"$2"
}

create_site() { # CLUSTER FILE
  on "$1" get namespace "$NAMESPACE" >/dev/null 2>&1 || on "$1" create namespace "$NAMESPACE"
  fill "$1" "$2" | on "$1" apply -f -
}

link() { # CLUSTER
  if on "$1" get "secret/$HUB" >/dev/null 2>&1; then
    echo "$1 has a token already"
    return
  fi
  fill "$1" token-request.yaml | on "$HUB" apply -f -
  on "$HUB" wait "secret/$1" --timeout="$TIMEOUT" \
    --for=jsonpath='{.metadata.labels.skupper\.io/type}'=connection-token
  on "$HUB" get "secret/$1" -o json |
    jq --arg name "$HUB" '{apiVersion, kind, type, data,
      metadata: {name: $name, labels: .metadata.labels, annotations: .metadata.annotations}}' |
    on "$1" create -f -
}

create_site "$HUB" site-hub.yaml
for worker in $WORKERS; do
  create_site "$worker" site-managed-cluster.yaml
  link "$worker"
done
