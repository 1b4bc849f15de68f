"""A real Slurm with a job whose process no signal ends, as one that waits for a file system."""

import os
import stat
from pathlib import Path

import pytest

from cdk_training_cluster import NodeGroup
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import slurm_configuration
from cdk_training_cluster.orchestrators.slurm.settings import SlurmNodes, SlurmSettings
from real_slurm import real_slurm

pytestmark = pytest.mark.sweep("test-slurm")

_NODES = ClusterContext.of([NodeGroup("workers", instance_types=["p5.48xlarge"], count=1)])
_SETTINGS = SlurmSettings(node_groups={"workers": SlurmNodes(fixed=True)})
_USER = 5001
_AS_USER = ("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
# The server of a file system in user space that answers its first request, which the mount makes, and no other.
_SERVER = f"""
import ctypes, os, struct

device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={{device}},rootmode=40000,user_id={_USER},group_id={_USER}".encode()
if ctypes.CDLL(None).mount(b"silent", b"/srv/silent", b"fuse", 6, options):
    raise SystemExit("the file system cannot be mounted")
_, _, number, _ = struct.unpack_from("<IIQQ", os.read(device, 1 << 20))
answer = struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 12, 9, 65536, 1, 1, 0, 0) + bytes(24)
os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, number) + answer)
open("/srv/mounted", "w").close()
while os.read(device, 1 << 20):
    open("/srv/asked", "w").close()
"""


def test_a_node_with_a_process_that_does_not_end_is_drained_and_taken_back_when_it_has_ended(tmp_path: Path) -> None:
    node = "workers-1"
    with real_slurm(tmp_path, slurm_configuration(_SETTINGS, _NODES), _NODES) as slurm:
        srv = slurm.root / "srv"
        os.mknod(slurm.root / "dev/fuse", stat.S_IFCHR | 0o600, os.makedev(10, 229))
        # Slurm's credential of a job names its user.
        for name, entry in (("passwd", f"user:x:{_USER}:{_USER}::/:/bin/bash"), ("group", f"user:x:{_USER}:")):
            with (slurm.root / "etc" / name).open("a") as file:
                file.write(f"{entry}\n")
        for device in (slurm.folder(node) / "dev").iterdir():
            device.chmod(0o666)
        (srv / "silent").mkdir()
        (srv / "server.py").write_text(_SERVER)
        # Before the node boots, which has this mount too then.
        start = "python3 /srv/server.py >/srv/server.log 2>&1 </dev/null & echo $!"
        server = slurm.run("bash", "-c", start).strip()
        slurm.wait_for("the file system is mounted", (srv / "mounted").exists)
        slurm.start()
        (srv / "job.sh").write_text("#!/bin/bash\nls /srv/silent\n")
        submit = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "/srv/job.sh")
        job = slurm.run(*_AS_USER, *submit).strip()
        slurm.wait_for("the process waits", (srv / "asked").exists)
        slurm.run(*_AS_USER, "scancel", job)
        slurm.wait_for_state(node, "DRAIN")
        assert slurm.shown("node", node)["Reason"].startswith("Kill task failed")

        def is_told() -> bool:
            slurm.let_minutes_pass(node)
            return (slurm.folder(node) / "run/cdk-training-cluster/slurm-told").exists()

        slurm.wait_for("an operator is told of the process", is_told)
        assert "DRAIN" in slurm.shown("node", node)["State"]
        slurm.run("kill", "-KILL", server)
        slurm.wait_for(f"{node} is taken back", lambda: slurm.is_taken_back(node))
        slurm.wait_for_state(node, "IDLE")
