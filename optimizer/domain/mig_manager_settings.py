"""The node labels and the ConfigMap by which generated policies set a MIG layout."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigLabels:
    """The labels by which a layout is asked for and confirmed, and the ConfigMap that holds it.

    `present` selects the node where a candidate names none.
    """

    wanted: str = "nvidia.com/mig.config"
    state: str = "nvidia.com/mig.config.state"
    done: str = "success"
    present: str = "nvidia.com/gpu.present"
    config_map: str = "dsf-mig-parted-config"
    config_namespace: str = "gpu-operator"


GPU_OPERATOR = MigLabels()
GUIDE = MigLabels(wanted="migsettinglabel", state="migresultlabel", done="true")
"""The labels with which the development guide mocks the GPU operator's."""
