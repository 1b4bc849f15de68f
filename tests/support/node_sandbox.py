"""A node in a directory: the real scripts run there, with stand-ins for what would change a machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import sha256_of, write_archive, write_scripts
from cdk_training_cluster.nodes.bootstrap.downloads import DOWNLOADS
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import failure_metric
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from cluster_contract.metrics import NODE_METRICS, node_namespace
from max_seconds import MAX_SECONDS

COMPLETED = (
    "aws autoscaling complete-lifecycle-action --region us-east-1 --auto-scaling-group-name workers-group "
    "--lifecycle-hook-name ready --instance-id i-0a1b2c3d4e5f67890 --lifecycle-action-result CONTINUE"
)
AMAZON_LINUX = 'ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n"
JOB_ROLE = "arn:aws:iam::111122223333:role/jobs"
UPDATE_TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer")
INSTANCE_STORE = "Amazon EC2 NVMe Instance Storage"
EBS = "Amazon Elastic Block Store"

# What a script may use of the machine that runs the tests: nothing that changes it outside the directory.
_TOOLS = (
    *("awk", "basename", "bash", "cat", "chmod", "cp", "cut", "date", "dirname", "env", "grep", "gzip", "head", "ln"),
    *("mkdir", "mktemp", "mv", "paste", "rm", "sed", "sh", "sha256sum", "stat", "tail", "tar", "tee", "touch", "wc"),
)

# A stand-in writes down how it was called, fails if the test asks for it, and does what follows.
_STAND_IN = """#!/bin/bash
{ printf '%s' "${0##*/}"; printf ' %s' "$@"; echo; } >>"$SANDBOX/calls"
if [[ -e $SANDBOX/fail/${0##*/} && "$*" =~ $(<"$SANDBOX/fail/${0##*/}") ]]; then
  echo "${0##*/} is broken" >&2
  exit 7
fi
"""

_INSTALL = """
for package in "$@"; do
  content=$SANDBOX/packages/${package##*/}
  if [[ -d $content ]]; then cp "$content"/* "$SANDBOX/bin/"; fi
done
"""
_BEHAVIOUR = {
    "amazon-cloudwatch-agent-ctl": "",
    "apt-get": _INSTALL,
    "apt-mark": "",
    "aws": """
case "$1 $2" in
  "s3 cp") cp "$SANDBOX/s3/$(basename "${@: -2:1}")" "${@: -1}" ;;
  "autoscaling describe-auto-scaling-instances")
    # Each answer but the last is given once.
    head -n 1 "$SANDBOX/lifecycle"
    if (($(wc -l <"$SANDBOX/lifecycle") > 1)); then sed -i 1d "$SANDBOX/lifecycle"; fi
    ;;
  "dynamodb put-item")
    # The places whose condition holds.
    if [[ $(<"$SANDBOX/places") != *$(sed 's/.*"key":{"S":"\\([0-9]\\)".*/\\1/' <<<"${@: -1}")* ]]; then
      echo "An error occurred (ConditionalCheckFailedException) when calling the PutItem operation" >&2
      exit 254
    fi
    ;;
esac
""",
    "blkid": """[[ -e $SANDBOX/labels/${@: -1} ]]""",
    "curl": """
case ${@: -1} in
  http://169.254.169.254/latest/api/token) echo a-token ;;
  http://169.254.169.254/latest/meta-data/instance-id)
    [[ "$*" == *"X-aws-ec2-metadata-token: a-token"* ]] && cat "$SANDBOX/instance-id" ;;
  *)
    while [[ $1 != --output ]]; do shift; done
    if ! cp "$SANDBOX/web/${*: -1:1}" "$2" 2>/dev/null; then echo "from ${*: -1}" >"$2"; fi
    ;;
esac
""",
    "dnf": _INSTALL,
    "docker": "",
    "dpkg": "echo amd64",
    "dpkg-query": """
printf '%s\\n' 'ii  linux-aws' 'ii  linux-image-6.8.0-1040-aws' 'un  linux-image-generic'
exit 1
""",
    "findmnt": """[[ -e $SANDBOX/mounted ]]""",
    "gpg": """
case $* in
  *--dearmor*) cat ;;
  *--verify*) printf '[GNUPG:] VALIDSIG %s 2026-11-01 1793491200 0 4 0 1 10 00 %s\\n' "$(<"$SANDBOX/signer")"{,} ;;
esac
""",
    "lnetctl": """cat "$SANDBOX/lnet" """,
    "lustre_rmmod": "",
    "lsblk": """cat "$SANDBOX/lsblk" """,
    "mdadm": "",
    "mkfs.xfs": """touch "$SANDBOX/labels/$3" """,
    "modprobe": "",
    "mount": """touch "$SANDBOX/mounted" """,
    "mount.lustre": "",
    "id": """if [[ $* == -u ]]; then echo 1000; else cat "$SANDBOX/users/${@: -1}" 2>/dev/null; fi""",
    "nft": "",
    "sleep": "",
    "snap": """cp "$SANDBOX/packages/aws-cli"/* "$SANDBOX/bin/" """,
    "systemctl": """
case $1 in
  is-enabled) [[ -e $SANDBOX/units/${@: -1} ]] ;;
  is-active)
    # Each answer is given once.
    if [[ ! -s $SANDBOX/updates ]]; then echo inactive; exit 3; fi
    head -n 1 "$SANDBOX/updates"
    sed -i 1d "$SANDBOX/updates"
    ;;
  start)
    for unit in "${@:2}"; do
      if [[ -e $SANDBOX/masked/$unit ]]; then
        echo "Failed to start $unit: Unit $unit is masked." >&2
        exit 1
      fi
    done
    if [[ -s $SANDBOX/units/$2 ]]; then source "$SANDBOX/units/$2"; fi
    ;;
  stop)
    for unit in "${@:2}"; do
      if [[ $unit == *.timer && ! -e $SANDBOX/units/$unit && ! -e $SANDBOX/masked/$unit ]]; then
        echo "Failed to stop $unit: Unit $unit not loaded." >&2
        exit 5
      fi
    done
    ;;
esac
""",
    "systemd-escape": """
name=$(sed 's|^/||; s|-|\\\\x2d|g; s|/|-|g' <<<"${@: -1}")
echo "$name.${2#--suffix=}"
""",
    "timedatectl": "echo yes",
    "uname": "echo 6.8.0-1040-aws",
}
# What an image may lack, and the package that brings it.
_PACKAGES = {
    "lustre-client": "mount.lustre",
    "lustre-client-modules-6.8.0-1040-aws": "mount.lustre",
    "amazon-cloudwatch-agent": "amazon-cloudwatch-agent-ctl",
    "amazon-cloudwatch-agent.deb": "amazon-cloudwatch-agent-ctl",
    "aws-cli": "aws",
    "mdadm": "mdadm",
    "nftables": "nft",
    "xfsprogs": "mkfs.xfs",
}


class NodeSandbox:
    """One node: its root directory, its stand-ins, and what was asked of them."""

    def __init__(
        self,
        directory: Path,
        *,
        os_release: str = AMAZON_LINUX,
        vendor: AcceleratorVendor = AcceleratorVendor.NVIDIA,
        disks: Sequence[str] = (),
        collector_seconds: int | None = None,
        **settings: str | Sequence[str],
    ) -> None:
        """Lay the node out as an image would.

        Args:
            directory: An empty directory.
            os_release: The content of `/etc/os-release`.
            vendor: Whose accelerators it has.
            disks: The lines of `lsblk`; see `disk`.
            collector_seconds: The seconds from one sample of its collector for Prometheus to the next.
                Default: - it has none.
            settings: Settings that differ from an NVIDIA node with EFA and a file system.
        """
        self.root = directory / "root"
        self.sandbox = directory / "sandbox"
        self.home = self.root / "opt/cdk-training-cluster"
        self.vendor, self.collector_seconds = vendor, collector_seconds
        for path in ("bin", "tools", "fail", "labels", "masked", "packages", "s3", "units", "users"):
            (self.sandbox / path).mkdir(parents=True)
        for path in ("dev", "etc/dnf", "sys/class/infiniband/rdmap0s6", "opt/aws/neuron/bin"):
            (self.root / path).mkdir(parents=True)
        self.write("etc/os-release", os_release)
        self.write("etc/fstab", "UUID=1234 / xfs defaults,noatime 1 1\n")
        self.write("etc/dnf/dnf.conf", "[main]\ngpgcheck=True\ninstallonly_limit=3\n")
        self.write("dev/console", "")
        self.write("opt/aws/neuron/bin/neuron-monitor", "")
        (self.root / "opt/aws/neuron/bin/neuron-monitor").chmod(0o755)
        (self.sandbox / "calls").touch()
        (self.sandbox / "signer").write_text(DOWNLOADS["CLOUDWATCH_AGENT_KEY"])
        (self.sandbox / "lsblk").write_text("".join(f"{line}\n" for line in disks))
        if os_release == UBUNTU:
            for timer in UPDATE_TIMERS:
                self.unit(timer)
        self.becomes("i-0a1b2c3d4e5f67890")
        self.in_states("InService")
        self._make_commands()
        self.settings: dict[str, str | Sequence[str]] = {
            "CLUSTER": "llama",
            "NODE_GROUP": "workers",
            "REGION": "us-east-1",
            "URL_SUFFIX": "amazonaws.com",
            "SCRIPTS": "s3://assets/scripts.zip",
            "SCRIPTS_SHA256": "",
            "EFA": "yes",
            "MOUNT_SOURCE": "fs-0a1b.fsx.us-east-1.amazonaws.com@tcp:/abcdev",
            "MOUNT_POINT": "/fsx",
            "METRIC_NAMESPACE": node_namespace("llama"),
            "FAILURE_METRIC": failure_metric("llama", "workers"),
            "COLLECTOR_FAILURE_METRIC": failure_metric("llama", "workers", NODE_METRICS.collector_failed),
            "REMOTE_WRITE_URL": "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1/api/v1/remote_write",
            "ENVIRONMENT": ["NCCL_SOCKET_IFNAME=^docker,lo,veth"],
            "SCRIPTS_BEFORE": [],
            "SCRIPTS_AFTER": [],
            "LAUNCH_HOOK": "",
            **settings,
        }

    def install_scripts(self) -> None:
        """Put scripts and settings where the user data puts them."""
        (self.home / "scripts").mkdir(parents=True)
        write_scripts(self.home / "scripts", self.vendor, collector_seconds=self.collector_seconds)
        self.change_settings()

    def change_settings(self, **settings: str | Sequence[str]) -> None:
        """Write the settings down, with some of them changed."""
        self.settings.update(settings)
        (self.home / "settings").write_text(shell_assignments(self.settings))

    def publish_scripts(self) -> None:
        """Put the scripts into S3 as the CDK CLI does."""
        staging = self.sandbox / "staging"
        staging.mkdir()
        write_scripts(staging, self.vendor)
        archive = self.sandbox / "s3/scripts.zip"
        write_archive(staging, archive)
        self.settings["SCRIPTS_SHA256"] = sha256_of(archive)

    def bootstrap(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the node's bootstrap."""
        return self.run(str(self.home / "scripts/bootstrap.sh"), *arguments)

    def step(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run one step alone."""
        return self.run("-c", f"cd {self.home}/scripts && exec bash {script}")

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a bash script on the node, with nothing but the stand-ins and harmless tools on its path."""
        return subprocess.run(
            ["bash", script, *arguments],
            env={
                "PATH": f"{self.sandbox}/bin:{self.sandbox}/tools",
                "ROOT": str(self.root),
                "SANDBOX": str(self.sandbox),
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9",
            },
            cwd="/",
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )

    def fail(self, command: str, arguments: str = "") -> None:
        """Let a stand-in fail: always, or where its arguments match an expression."""
        (self.sandbox / "fail" / command).write_text(arguments)

    def bare(self) -> Self:
        """Let the image lack what the scripts can install."""
        self.lacks("mount.lustre")
        self.lacks("nft")
        self.lacks("amazon-cloudwatch-agent-ctl")
        return self

    def lacks(self, command: str) -> None:
        """Take a command away from the image."""
        (self.sandbox / "bin" / command).unlink()

    def unit(self, name: str, start: str = "") -> None:
        """Give the image an enabled systemd unit; `start` is what starting it does."""
        (self.sandbox / "units" / name).write_text(start)

    def masks(self, name: str) -> None:
        """Let the image have a systemd unit masked: nothing starts it."""
        (self.sandbox / "units" / name).unlink(missing_ok=True)
        (self.sandbox / "masked" / name).touch()

    def becomes(self, instance_id: str) -> None:
        """Let the metadata service name an instance."""
        (self.sandbox / "instance-id").write_text(f"{instance_id}\n")

    def in_states(self, *states: str) -> None:
        """Let Auto Scaling tell the node's lifecycle states one after the other; "" is of a node it does not know."""
        answers = [f"workers-group\t{state}\n" if state else "\n" for state in states]
        (self.sandbox / "lifecycle").write_text("".join(answers))

    def user_script(self, name: str, content: str) -> str:
        """Put a user's script into S3 and return the setting that names it."""
        script = self.sandbox / "s3" / f"hash-{len(name)}.sh"
        script.write_text(content)
        return f"s3://assets/{script.name} {sha256_of(script)} {name}"

    def write(self, path: str, content: str) -> None:
        """Write a file of the node."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def read(self, path: str) -> str:
        """Read a file of the node."""
        return (self.root / path).read_text()

    @property
    def calls(self) -> list[str]:
        """What the stand-ins were asked, in order."""
        return (self.sandbox / "calls").read_text().splitlines()

    @property
    def completions(self) -> list[str]:
        """The lifecycle actions that it completed, in order."""
        return [call for call in self.calls if "complete-lifecycle-action" in call]

    @property
    def state(self) -> Mapping[str, str]:
        """What the node says of itself."""
        state: dict[str, str] = json.loads(self.read("var/lib/cdk-training-cluster/bootstrap.json"))
        return state

    @property
    def steps(self) -> list[str]:
        """The steps that were begun, in order."""
        lines = self.read("var/log/cdk-training-cluster.log").splitlines()
        return [line.split(" step ", 1)[1] for line in lines if " step " in line and " failed" not in line]

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Every file's mode and content, but for those that tell what happened and when."""
        telling = {"cdk-training-cluster.log", "console"}
        return {
            str(path.relative_to(self.root)): (path.stat().st_mode, path.read_bytes())
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.name not in telling
        }

    def _make_commands(self) -> None:
        tools = self.sandbox / "tools"
        for tool in _TOOLS:
            found = shutil.which(tool, path=os.defpath)
            assert found is not None, f"the tests need {tool}"
            (tools / tool).symlink_to(found)
        (tools / "python3").symlink_to(Path(sys.executable).resolve())
        for command in _BEHAVIOUR:
            self._make_command(self.sandbox / "bin", command)
        for package, command in _PACKAGES.items():
            (self.sandbox / "packages" / package).mkdir()
            self._make_command(self.sandbox / "packages" / package, command)

    @staticmethod
    def _make_command(directory: Path, command: str) -> None:
        (directory / command).write_text(f"{_STAND_IN}{_BEHAVIOUR[command]}\n")
        (directory / command).chmod(0o755)


def disk(name: str, model: str, *, file_system: str = "", partitions: str = "") -> str:
    """Return a line of `lsblk --pairs`."""
    return f'NAME="/dev/{name}" MODEL="{model}" FSTYPE="{file_system}" PTTYPE="{partitions}"'
