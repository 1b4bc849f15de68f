"""What runs on the nodes of a Slurm cluster: the scripts that verify a node, and the one that puts them there."""

from dataclasses import dataclass
from pathlib import Path

from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from cdk_training_cluster.orchestrators.slurm.paths import FOLDER

_SCRIPTS = Path(__file__).parent / "scripts"
_LIBRARY, _INSTALL = "node.sh", "install.sh"


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """Say what the scripts of a node need to know.

    Attributes:
        slurm_bin: The folder of Slurm's commands.
        mps: Whether the node runs NVIDIA's Multi-Process Service. Default: - no.
        mig_profiles: The MIG profiles of each GPU, one an instance. Default: - the GPUs are not in MIG mode.
    """

    slurm_bin: str
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
        facts: What the scripts need to know.
    """
    settings = shell_assignments(
        {
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
