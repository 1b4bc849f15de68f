"""A node in a directory that `cluster-node verify` looks at: a p5.48xlarge with all it has when all is well."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from cdk_training_cluster.nodes.bootstrap.asset import AGENT, CONTRACT, NVIDIA_ML_PY
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import failure_metric
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from max_seconds import MAX_SECONDS

START = """
import os, sys; sys.path[:0] = sys.argv.pop(1).split(":")
from cluster_node import verify
from cluster_node.__main__ import main
verify._BOOT_SECONDS = float(os.environ.get("BOOT_SECONDS", verify._BOOT_SECONDS))
main()
"""
MODULES = f"{AGENT.parent}:{CONTRACT.parent}"
COMMANDS = {
    "aws": """
printf "%s\\n" "$*" >>"$ROOT/calls"
if [[ $* == *get-caller-identity* ]]; then echo AROAEXAMPLE:i-0a1b2c3d4e5f67890; fi
if [[ $* != *put-events* ]]; then exit; fi
last=${@: -1}
cp "${last#file://}" "$ROOT/events"
echo '{"Entries": [{"EventId": "1"}]}'
""",
    "dd": "",
    "fi_info": "echo 'provider: efa'",
    "stat": "echo lustre",
    "systemctl": "case $1 in is-active) echo active ;; show) echo infinity ;; esac",
    "timedatectl": "echo yes",
}
EXPECTED = {"p5.48xlarge": {"gpus": 8, "gpu": "H100", "efa_devices": 2, "disks": 2}}
ALL_REDUCE = "/usr/local/cuda-12.9/efa/test-cuda-12.9/all_reduce_perf"


def nccl_row(size: int, gb_per_s: float, wrong: object = 0) -> str:
    """Return a line of all_reduce_perf."""
    form = f"4030.0  266.4  {gb_per_s}  {wrong}"
    return f"  {size}  {size // 4}  float  sum  -1  {form}  {form}"


class VerifiedNode:
    """The node; what it has can be taken away."""

    def __init__(self, directory: Path) -> None:
        """Lay it out.

        Args:
            directory: An empty directory.
        """
        self.root, self.programs = directory / "root", directory / "bin"
        self.programs.mkdir()
        for name, does in COMMANDS.items():
            self.command(name, does)
        self.write("dev/console")
        self.write("fsx/here")
        self.write("proc/sys/kernel/random/boot_id", "8c9b1f0e-1111-4222-8333-444455556666\n")
        self.write("sys/devices/virtual/dmi/id/product_name", "p5.48xlarge\n")
        self.write("sys/devices/virtual/dmi/id/board_asset_tag", "i-0a1b2c3d4e5f67890\n")
        for number in range(2):
            self.write(f"sys/class/infiniband/rdmap{number}/ports/1/state", "4: ACTIVE\n")
            self.write(f"sys/class/nvme/nvme{number + 1}/model", "Amazon EC2 NVMe Instance Storage        \n")
        self.command(ALL_REDUCE, f"echo '{nccl_row(2**30, 466.2)}'")
        self.configure()

    def configure(self, expected: object = EXPECTED, **settings: str) -> None:
        """Write the settings of its user data."""
        known = {
            "CLUSTER": "llama",
            "NODE_GROUP": "workers",
            "REGION": "us-east-1",
            "MOUNT_POINT": "/fsx",
            "METRIC_NAMESPACE": "CdkTrainingCluster/Nodes/llama",
            "FAILURE_METRIC": failure_metric("llama", "workers"),
            "EXPECTED": json.dumps(expected),
            **settings,
        }
        self.write("opt/cdk-training-cluster/settings", shell_assignments({**known, "SCRIPTS_AFTER": []}))

    def write(self, path: str, text: str = "") -> None:
        """Write a file of the node."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path: str) -> Any:
        """Read a JSON file of the node."""
        return json.loads((self.root / path).read_text())

    def command(self, name: str, does: str) -> None:
        """Give the node a program."""
        path = self.root / name[1:] if name.startswith("/") else self.programs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{does}\n")
        path.chmod(0o755)

    def verify(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the program.

        Args:
            *arguments: Its arguments.
            **environment: The state of the GPUs, as `fake_nvml.c` has it; BOOT_SECONDS that services may take.
        """
        return subprocess.run(
            [sys.executable, "-I", "-c", START, MODULES, "verify", *arguments],
            env={
                "PATH": f"{self.programs}:{os.defpath}",
                "ROOT": str(self.root),
                "LD_LIBRARY_PATH": str(nvml()),
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )

    @property
    def result(self) -> Any:
        """The recorded result."""
        return self.read("var/lib/cdk-training-cluster/verify.json")

    @property
    def calls(self) -> list[str]:
        """What the node asked of AWS."""
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []


@cache
def nvml() -> Path:
    """Return a folder with nvidia-ml-py and a stand-in for NVIDIA's library; skip where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip(reason="the fake libnvidia-ml.so needs a C compiler, cc")
    folder = Path(mkdtemp(prefix="nvml-"))
    atexit.register(shutil.rmtree, folder)
    with zipfile.ZipFile(NVIDIA_ML_PY) as wheel:
        wheel.extract("pynvml.py", folder)
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(source)], check=True)
    return folder
