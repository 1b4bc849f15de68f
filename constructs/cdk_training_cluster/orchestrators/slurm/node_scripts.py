"""What runs on the nodes of a Slurm cluster: the scripts that verify a node, and the one that puts them there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdk_training_cluster.nodes.bootstrap.settings import shell_assignments
from cdk_training_cluster.orchestrators.slurm.paths import FOLDER

DRAIN_FOLDER: Final = "/run/cdk-training-cluster/drain"
"""A file here takes its node out of Slurm's queues; its first line is the reason that Slurm shows."""

_SCRIPTS = Path(__file__).parent / "scripts"
_LIBRARY, _INSTALL = "node.sh", "install.sh"


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """Say what a node has when all is well; its prolog refuses one that has less.

    Attributes:
        gpus: NVIDIA GPUs, of the catalog.
        neuron_devices: Neuron devices, of the catalog.
        efa_devices: Elastic Fabric Adapters of its launch template; of several instance types the least.
        mount_point: Where the file system is mounted. Default: - there is none.
        slurm_bin: The folder of Slurm's commands.
        mps: Whether the node runs NVIDIA's Multi-Process Service. Default: - no.
        mig_profiles: The MIG profiles of each GPU, one an instance. Default: - the GPUs are not in MIG mode.
    """

    gpus: int
    neuron_devices: int
    efa_devices: int
    slurm_bin: str
    mount_point: str = ""
    mps: bool = False
    mig_profiles: tuple[str, ...] = ()


def pcs_commands(version: str) -> str:
    """Return the folder of Slurm's commands on nodes of AWS PCS.

    Args:
        version: Slurm's version.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/working-with_ami_installers.html
    """
    return f"/opt/aws/pcs/scheduler/slurm-{version}/bin"


def install_script(facts: NodeFacts) -> str:
    """Return the script that a node runs once, before `slurmd` starts.

    Args:
        facts: What the node has when all is well.
    """
    settings = shell_assignments(
        {
            "GPUS": str(facts.gpus),
            "NEURON_DEVICES": str(facts.neuron_devices),
            "EFA_DEVICES": str(facts.efa_devices),
            "MOUNT_POINT": facts.mount_point,
            "SLURM_BIN": facts.slurm_bin,
            "MPS": "yes" if facts.mps else "",
            "MIG_PROFILES": ",".join(facts.mig_profiles),
        }
    )
    files = {"settings": settings} | {
        path.name: path.read_text(encoding="utf-8") for path in sorted(_SCRIPTS.glob("*.sh")) if path.name != _INSTALL
    }
    written = "".join(
        f"cat >\"$FOLDER/{name}\" <<'END OF {name}'\n{text}END OF {name}\n" for name, text in files.items()
    )
    return f'#!/bin/bash\nset -euo pipefail\nFOLDER=${{ROOT:-}}{FOLDER}\nmkdir -p "$FOLDER"\n{written}' + (
        (_SCRIPTS / _INSTALL).read_text(encoding="utf-8")
    )
