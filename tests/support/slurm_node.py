"""A node of Slurm in a directory, with the scripts that Slurm runs there."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdk_training_cluster.nodes.bootstrap.node_bootstrap import failure_metric
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from cdk_training_cluster.orchestrators.slurm.node_scripts import NodeFacts, install_script
from max_seconds import MAX_SECONDS
from verified_node import MODULES, START, nvml

_SCONTROL = """#!/bin/bash
printf '%s\\n' "$SLURM_CONF $*" >>"$ROOT/scontrol"
if [[ $* == *show* ]]; then cat "$ROOT/shown"; fi
"""


# Nobody on the machine of the test.
USER = 987_654


class SlurmNode:
    """A node in a directory, with a GPU, an EFA device and a file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user, self.job = USER, 1
        self.write("sys/class/infiniband/rdma0/ports/1/state", "4: ACTIVE")
        self.command("stat", "echo lustre")
        self.gpus()
        self.command("scontrol", _SCONTROL)
        self.command("pgrep", "exit 1")
        expected = json.dumps({"p5.4xlarge": {"gpus": 1, "gpu": "H100", "efa_devices": 1}})
        settings = {"MOUNT_POINT": "/fsx", "EXPECTED": expected, "REGION": "us-east-1", "METRIC_NAMESPACE": "N"}
        settings |= {"FAILURE_METRIC": failure_metric("llama", "workers")}
        self.write("opt/cdk-training-cluster/settings", shell_assignments(settings))
        self.write("shown", "NodeName=n1 State=IDLE")
        self.facts = NodeFacts(slurm_bin=str(root / "usr/local/bin"))
        self.install()

    def install(self, **changes: Any) -> subprocess.CompletedProcess[str]:
        return self.run("-c", install_script(replace(self.facts, **changes)))

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def command(self, name: str, does: str) -> None:
        self.write(f"usr/local/bin/{name}", does if does.startswith("#!") else f"#!/bin/bash\n{does}\n")
        (self.root / "usr/local/bin" / name).chmod(0o755)

    def gpus(self, state: str = "") -> None:
        start = f"exec /usr/bin/python3 -I -c '{START}' {MODULES}:{nvml()} \"$@\""
        self.command("cluster-node", f"export LD_LIBRARY_PATH={nvml()} NVML_GPUS=1 {state}\n{start}")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The scripts that Slurm runs set a search path themselves.
        environment = {
            "ROOT": str(self.root),
            "SLURMD_NODENAME": "n1",
            "SLURM_JOB_UID": str(self.user),
            "SLURM_JOB_ID": str(self.job),
            "PATH": f"{self.root}/usr/local/bin:/usr/bin:/bin",
        }
        return subprocess.run(
            ["/bin/bash", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )

    def slurm_runs(self, script: str) -> int:
        assert os.access(f"{self.root}{script}", os.X_OK)
        return self.run(f"{self.root}{script}").returncode

    @property
    def asked(self) -> list[str]:
        path = self.root / "scontrol"
        return path.read_text().splitlines() if path.exists() else []

    def jobs_run(self, *script_of_job: tuple[str, int]) -> None:
        for script, self.job in script_of_job:
            assert self.slurm_runs(script) == 0
