"""What a user can switch in each chart, and few combinations in which each pair occurs."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

Values = dict[str, Any]

DIGEST = "sha256:" + "0" * 64
PEERS = [{"namespaceSelector": {"matchLabels": {"team": "observability"}}}]
POD: dict[str, Values] = {
    "digest": {"image": {"digest": DIGEST}},
    "scheduling": {
        "imagePullSecrets": [{"name": "pull"}],
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"key": "arch", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ],
        "priorityClassName": "system-cluster-critical",
    },
    "environment": {"extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]},
    "pod": {"podLabels": {"team": "a"}, "podAnnotations": {"note": "b"}},
    "probes": {"startupProbe": {"periodSeconds": 5}, "livenessProbe": {"timeoutSeconds": 9}},
    "logs": {"logLevel": "debug", "extraArgs": ["--log-format=json"]},
    "security": {
        "podSecurityContext": {"fsGroup": 2000},
        "securityContext": {"runAsUser": 1000},
        "revisionHistoryLimit": 3,
    },
    "policy": {"networkPolicy": {"enabled": True, "egress": [{}]}},
}
STRATEGY: Values = {"strategy": {"type": "Recreate"}}
VOLUMES: Values = {
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
}
MONITORS: Values = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "p"}, "interval": "30s"},
    "podMonitor": {
        "enabled": True,
        "scrapeTimeout": "9s",
        "relabelings": [{"targetLabel": "hub", "replacement": "h"}],
    },
}
ALL_MONITORING: Values = {
    **MONITORS,
    "rules": {"enabled": True, "labels": {"release": "p"}},
    "dashboards": {"enabled": True, "annotations": {"folder": "dsf"}},
}
COMMON: Values = {"commonLabels": {"team": "a"}, "commonAnnotations": {"owner": "b"}}
ADDON: dict[str, Values] = {
    "manual": {"addOn": {"installStrategy": "Manual"}},
    "extra placements": {
        "addOn": {
            "extraPlacements": [
                {
                    "name": "arm64",
                    "namespace": "addons",
                    "configs": [
                        {
                            "group": "addon.open-cluster-management.io",
                            "resource": "addondeploymentconfigs",
                            "name": "arm64",
                            "namespace": "addons",
                        }
                    ],
                }
            ]
        }
    },
    "deployment config": {
        "addOn": {
            "deploymentConfig": {
                "nodePlacement": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a"}]},
                "resourceRequirements": [
                    {"containerID": "deployments:*:*", "resources": {"limits": {"memory": "1Gi"}}}
                ],
                "registries": [{"source": "quay.io/a", "mirror": "registry.example/a"}],
                "proxyConfig": {"httpsProxy": "http://proxy:3128", "noProxy": ".svc"},
                "customizedVariables": [{"name": "SITE", "value": "x"}],
            }
        }
    },
}
SCORER_HOSTS: Values = {
    name: {"hosts": [f"{name}.example"]}
    for name in ("sample-scorer", "static-scorer", "llm-forecast-scorer")
}
CHARTS: dict[str, dict[str, Values]] = {
    "dynamic-scoring-framework": {
        **{
            f"controller {name}": {"hubSetting": {"resourceController": value}}
            for name, value in POD.items()
        },
        **{f"agent {name}": {"spokeSetting": {"agent": value}} for name, value in POD.items()},
        **ADDON,
        "hub volumes": {"hubSetting": VOLUMES},
        "agent volumes": {"spokeSetting": {"agent": VOLUMES}},
        "strategy": {"hubSetting": {"resourceController": STRATEGY}},
        "one replica": {"hubSetting": {"resourceController": {"replicas": 1}}},
        "own account": {
            "hubSetting": {
                "resourceController": {"serviceAccount": {"create": False, "name": "own"}}
            }
        },
        "dispatcher": {"hubSetting": {"dispatcher": {"enabled": True, "dryRun": True}}},
        "metrics peers": {
            "hubSetting": {"resourceController": {"networkPolicy": {"metricsFrom": PEERS}}},
            "spokeSetting": {"agent": {"networkPolicy": {"metricsFrom": PEERS}}},
        },
        "otlp": {"spokeSetting": {"agent": {"otlp": {"enabled": True, "allowedFrom": PEERS}}}},
        "readable resources": {
            "spokeSetting": {
                "agent": {
                    "readableResources": [
                        {"apiGroup": "metrics.k8s.io", "resource": "nodes"},
                        {"apiGroup": "", "resource": "pods", "namespace": "shop"},
                    ]
                }
            }
        },
        "inventory": {
            "spokeSetting": {"agent": {"inventory": {"enabled": True, "nodeLabels": ["rack"]}}}
        },
        "push": {
            "spokeSetting": {
                "agent": {
                    "push": {
                        "enabled": True,
                        "minInterval": "1m30s",
                        "allowedFrom": PEERS,
                        "tlsSecretName": "push",
                    }
                }
            }
        },
        "secrets": {
            "hubSetting": {"resourceController": {"distributeSecrets": True}},
            "spokeSetting": {"agent": {"secretNames": ["token"]}},
        },
        "manifests": {"hubSetting": {"resourceController": {"manifestNamespaces": ["default"]}}},
        "monitoring": {"metrics": ALL_MONITORING},
        "agent monitoring": {"spokeSetting": {"agent": {"metrics": MONITORS}}},
        "no crds": {"crds": {"install": False}},
        "no admission policy": {"addOn": {"admissionPolicy": {"enabled": False}}},
        "bound": {"hubSetting": {"skipClusterSetBinding": True}},
        "common": COMMON,
    },
    "dynamic-scoring-optimizer": {
        **POD,
        "volumes": VOLUMES,
        "peers": {"networkPolicy": {"from": PEERS}},
        "tls": {"tls": {"secretName": "tls"}},
        "plain http": {"tls": {"source": "None", "secretName": ""}},
        "cert-manager": {
            "tls": {"source": "CertManager", "certManager": {"issuerRef": {"name": "ca"}}}
        },
        "ingress": {
            "ingress": {
                "enabled": True,
                "className": "nginx",
                "hosts": ["dsf.example"],
                "tls": [{"secretName": "dsf", "hosts": ["dsf.example"]}],
            }
        },
        "route": {
            "httpRoute": {
                "enabled": True,
                "parentRefs": [{"name": "gateway"}],
                "hostnames": ["route.example"],
            }
        },
        "node port": {"service": {"type": "NodePort", "annotations": {"a": "b"}}},
        "budget": {"podDisruptionBudget": {"enabled": True}},
        "own account": {"serviceAccount": {"create": False, "name": "own"}},
        "writes": {"allowWrites": True, "mig": {"generatePolicies": True}},
        "annotates": {"allowWrites": True, "constraints": {"annotate": True}},
        "impersonation": {
            "allowWrites": True,
            "auth": {
                "impersonate": True,
                "impersonated": {
                    "users": ["oidc:ann@example.com"],
                    "groups": ["oidc:placers"],
                    "serviceAccounts": ["default/planner"],
                },
            },
        },
        "rollouts": {"rollouts": {"enabled": True}},
        "no manifest works": {"manifestWorks": {"read": False}},
        "no namespaces": {"namespaces": []},
        "monitoring": {"metrics": ALL_MONITORING},
        "no crds": {"crds": {"install": False}},
        "name": {"fullnameOverride": "optimizer"},
        "common": COMMON,
    },
    "policy-watcher": {
        **POD,
        **ADDON,
        "volumes": VOLUMES,
        "peers": {"networkPolicy": {"metricsFrom": PEERS}},
        "one cluster": {"clusterName": "east"},
        "bound": {"addOn": {"skipClusterSetBinding": True}},
        "own account": {"serviceAccount": {"create": False, "name": "own"}},
        "monitoring": {"metrics": MONITORS},
        "common": COMMON,
    },
    "sample-scorers": {
        **{name: value for name, value in POD.items() if name not in {"digest", "logs"}},
        "strategy": STRATEGY,
        "volumes": VOLUMES,
        "peers": {"networkPolicy": {"from": PEERS}},
        "scorers": {
            "scorers": {
                "static-scorer": {"enabled": True, "args": ["--port=8000"], "nodePort": 30008},
                "llm-forecast-scorer": {
                    "enabled": True,
                    "image": {"digest": DIGEST},
                    "extraEnv": [
                        {"name": "MODEL_NAME", "value": "m"},
                        {"name": "VLLM_ENDPOINT", "value": "http://127.0.0.1:9/v1"},
                    ],
                },
            }
        },
        "node port": {"service": {"type": "NodePort", "annotations": {"a": "b"}}},
        "ingress": {
            "ingress": {"enabled": True, "className": "nginx", "tls": [{"secretName": "dsf"}]},
            "scorers": SCORER_HOSTS,
        },
        "route": {
            "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]},
            "scorers": SCORER_HOSTS,
        },
        "monitoring": {
            "metrics": MONITORS,
            "scorers": {"simple-prediction-scorer": {"enabled": True, "hosts": ["c.example"]}},
        },
        "autoscaling": {"autoscaling": {"enabled": True}},
        "budget": {"podDisruptionBudget": {"enabled": True}},
        "own account": {"serviceAccount": {"create": False, "name": "own"}},
        "common": COMMON,
    },
}
PROFILES = ("trial", "production", "air-gapped", "openshift")
EXAMPLES = {
    "docs/examples/addon/arm64-values.yaml": "dynamic-scoring-framework",
    "docs/examples/prometheus/framework-values.yaml": "dynamic-scoring-framework",
    **{f"charts/{chart}/values/{name}.yaml": chart for chart in CHARTS for name in PROFILES},
}
"""The values files for users, and the chart of each."""


def combinations(chart: str) -> Iterator[tuple[str, Values]]:
    """Values in which each pair of toggles is on, off, and mixed both ways at least once.

    Two toggles differ in a bit of their numbers, so one combination for each bit, its complement,
    all and none are enough: 2 log2(n) + 2 of them.
    """
    toggles = list(CHARTS[chart].values())
    numbers = range(len(toggles))
    yield "none", {}
    yield "all", merged(toggles)
    for bit in range(max(numbers).bit_length()):
        for wanted in (0, 1):
            chosen = [toggles[number] for number in numbers if number >> bit & 1 == wanted]
            yield f"bit {bit} is {wanted}", merged(chosen)


def merged(toggles: list[Values]) -> Values:
    """All toggles' values in one, as helm merges value files."""
    values: Values = {}
    for toggle in toggles:
        _merge(values, toggle)
    return values


def _merge(values: Values, more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            _merge(values[key], value)
        else:
            values[key] = deepcopy(value)
