"""How a node keeps the credentials of its own role to root, and gives its users those of the jobs' role."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from node_sandbox import AMAZON_LINUX, JOB_ROLE, UBUNTU, NodeSandbox

MakeNode = Callable[..., NodeSandbox]

_URL = "http://127.0.0.1:301/job-role"
_VARIABLE = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_UNITS = "etc/systemd/system/cdk-training-cluster"
_RULES = """\
table inet cdk_training_cluster
delete table inet cdk_training_cluster
table inet cdk_training_cluster {
  chain output {
    type filter hook output priority filter; policy accept;
    ip daddr 169.254.169.254 tcp dport 80 jump service
    ip6 daddr fd00:ec2::254 tcp dport 80 jump service
  }
  chain service {
    meta skuid { USERS } accept
    tcp flags & (syn | ack) == syn reject with tcp reset
    meta skuid != 0 reject with tcp reset
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 169.254.169.254 tcp dport 80 reject with tcp reset
    ip6 daddr fd00:ec2::254 tcp dport 80 reject with tcp reset
  }
}
"""


@pytest.mark.parametrize("users", ["0", "0, 998"])
@pytest.mark.parametrize("os_release", [AMAZON_LINUX, UBUNTU])
def test_root_and_ec2_instance_connect_alone_reach_the_metadata_service(
    make_node: MakeNode, os_release: str, users: str
) -> None:
    node = make_node(os_release=os_release, JOB_ROLE=JOB_ROLE)
    node.lacks("nft")
    if users != "0":
        (node.sandbox / "users/ec2-instance-connect").write_text("998\n")
    assert node.bootstrap().returncode == 0
    assert node.read("opt/cdk-training-cluster/metadata.nft") == _RULES.replace("USERS", users)
    assert f"nft -f {node.home}/metadata.nft" in node.calls
    assert any("nftables" in call for call in node.calls)
    unit = node.read(f"{_UNITS}-metadata.service").splitlines()
    assert {"Before=network-pre.target", "After=nftables.service", "PartOf=nftables.service"} <= set(unit)
    assert f"ExecStart={node.sandbox}/bin/nft -f /opt/cdk-training-cluster/metadata.nft" in unit
    assert "systemctl enable cdk-training-cluster-metadata.service" in node.calls


def test_nothing_of_a_user_runs_on_a_node_before_the_rules_of_its_metadata_service(make_node: MakeNode) -> None:
    node = make_node(JOB_ROLE=JOB_ROLE)
    node.fail("nft")
    assert node.bootstrap().returncode == 1
    assert node.steps == ["updates", "commands", "metadata"]


def test_each_boot_sets_the_rules_anew_and_a_node_that_cannot_takes_no_job(make_node: MakeNode) -> None:
    node = make_node(JOB_ROLE=JOB_ROLE)
    assert node.bootstrap().returncode == 0
    node.fail("nft")
    assert node.bootstrap("--boot").returncode == 1
    assert (node.state["state"], node.state["step"]) == ("failed", "metadata")
    (node.sandbox / "fail/nft").unlink()
    assert node.bootstrap("--boot").returncode == 0
    assert node.state["state"] == "ready"


_ROOT = Path(__file__).parents[4] / "build/slurm/root"


def _nft() -> list[str]:
    """Return the command of this machine, or that of the packages that `make test-slurm` unpacks."""
    if own := shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return [own]
    for loader in _ROOT.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"):
        return [str(loader), "--library-path", str(loader.parent), str(_ROOT / "usr/sbin/nft")]
    return []


_NFT = _nft()
# A copy of a packet belongs to no socket, as what the kernel itself sends.
_NO_OWNER = "".join(
    f"""
table {family} no_owner {{
  chain output {{
    type filter hook output priority filter - 1; policy accept;
    {family} daddr {address} meta skuid 65533 dup to {address}
    {family} daddr {address} meta skuid 65533 drop
  }}
}}
"""
    for family, address in (("ip", "169.254.169.254"), ("ip6", "fd00:ec2::254"))
)
_PROOF = """
import json, os, socket, subprocess, sys, time

run = lambda *command: subprocess.run(command, check=True)
addresses = {"169.254.169.254/32": socket.AF_INET, "fd00:ec2::254/128": socket.AF_INET6}
run("ip", "link", "set", "lo", "up")
servers = []
for address, family in addresses.items():
    run("ip", "address", "add", address, "dev", "lo", *(["nodad"] if family == socket.AF_INET6 else []))
    servers.append(socket.create_server((address.partition("/")[0], 80), family=family))

def reached(user):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setgid(user)
        os.setuid(user)
        codes = []
        for server in servers:
            with socket.socket(server.family) as client:
                codes.append(client.connect_ex(server.getsockname()[:2]) == 0)
        os.write(write, json.dumps(codes).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(read, 100))

def last_ack():
    lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
    return sum(fields[3] == "09" for fields in lines)

def closed():
    for server in servers:
        client = socket.create_connection(server.getsockname()[:2])
        accepted = server.accept()[0]
        client.close()
        accepted.close()
    for _ in range(300):
        if not last_ack():
            return True
        time.sleep(0.01)
    return False

*nft, no_owner, rules = sys.argv[1:]
# A kernel without nf_dup shows only that the user is refused.
subprocess.run([*nft, "-f", no_owner])
before = [*(reached(user) for user in (0, 65533, 65534)), closed()]
for _ in range(2):
    run(*nft, "-f", rules)
print(json.dumps([before, [*(reached(user) for user in (0, 998, 65533, 65534)), closed()]]))
"""


_UNFIT = not _NFT or shutil.which("ip") is None or os.geteuid() != 0


@pytest.mark.skipif(_UNFIT, reason="needs root, ip, and nft, which make test-slurm unpacks")
def test_the_kernel_takes_the_rules_and_lets_no_other_user_connect(tmp_path: Path) -> None:
    rules = tmp_path / "metadata.nft"
    rules.write_text(_RULES.replace("USERS", "0, 998"))
    # Not with the rules themselves: wrong ones must fail the test.
    probe = ["unshare", "--net", *_NFT, "-c", "add table inet probe"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip(reason="this kernel has no network namespaces or no nf_tables")
    no_owner = tmp_path / "no_owner.nft"
    no_owner.write_text(_NO_OWNER)
    proof = ["unshare", "--net", sys.executable, "-c", _PROOF, *_NFT, str(no_owner), str(rules)]
    done = subprocess.run(proof, check=True, capture_output=True, text=True)
    yes, no = [True, True], [False, False]
    # The kernel acknowledges the end of root's connections for sockets that no process has any more.
    assert json.loads(done.stdout) == [[yes, yes, yes, True], [yes, yes, no, no, True]]


def test_users_get_the_address_of_the_credentials_and_root_does_not(make_node: MakeNode) -> None:
    node = make_node(JOB_ROLE=JOB_ROLE)
    node.change_settings(SCRIPTS_AFTER=[node.user_script("own.sh", f'#!/bin/bash\necho "{_VARIABLE} ${_VARIABLE}"')])
    assert node.bootstrap().returncode == 0
    profile = node.read("etc/profile.d/cdk-training-cluster.sh")
    for user, expected in (("0", ""), ("1000", _URL)):
        shell = f'id() {{ echo {user}; }}; {profile}\nprintf %s "${_VARIABLE}"'
        done = subprocess.run(
            ["bash", "-c", shell], env={"PATH": os.defpath}, capture_output=True, text=True, check=True
        )
        assert done.stdout == expected
    # Services of root would have it.
    assert _VARIABLE not in node.read("etc/systemd/system.conf.d/90-cdk-training-cluster-environment.conf")
    assert json.loads(node.read("etc/cdk-training-cluster/job.json"))["credentials_url"] == _URL
    # What is granted to a cluster is for its scripts, too.
    assert f"{_VARIABLE} {_URL}" in node.read("var/log/cdk-training-cluster.log")


def test_root_keeps_the_role_of_the_node_whatever_environment_sudo_has_kept(make_node: MakeNode) -> None:
    node = make_node(JOB_ROLE=JOB_ROLE)
    said = node.run("-c", f'export {_VARIABLE}=x; cd {node.home}/scripts; . ./lib.sh; echo "<${{{_VARIABLE}:-}}>"')
    assert said.stdout == "<>\n"
    assert node.step("commands.sh").returncode == 0
    assert f"unset LD_LIBRARY_PATH {_VARIABLE}\n" in node.read("usr/local/bin/cluster-node")


@pytest.mark.parametrize("snap", [False, True])
def test_the_service_of_the_credentials_runs_in_a_sandbox_where_the_aws_cli_does(
    make_node: MakeNode, *, snap: bool
) -> None:
    node = make_node(JOB_ROLE=JOB_ROLE)
    if snap:
        script = node.home / "scripts/credentials.sh"
        script.write_text(script.read_text().replace("$(command -v aws)", "/snap/bin/aws"))
    assert node.step("credentials.sh").returncode == 0
    unit = node.read(f"{_UNITS}-credentials.service")
    assert f"ExecStart=/usr/local/bin/cluster-node credentials --role {JOB_ROLE} --url {_URL}\n" in unit
    assert ("CapabilityBoundingSet=CAP_NET_BIND_SERVICE\n" in unit, "ProtectSystem=strict\n" in unit) == (
        not snap,
    ) * 2
    # Some versions of the AWS CLI end where they cannot make a folder for their cache at home.
    # https://github.com/aws/aws-cli/blob/v2/awscli/telemetry.py
    assert ({"PrivateTmp=yes", "Environment=HOME=/tmp"} <= set(unit.splitlines())) == (not snap)


def test_a_node_that_aws_sts_does_not_answer_is_set_up_and_says_so(make_node: MakeNode) -> None:
    node = make_node(JOB_ROLE=JOB_ROLE)
    node.fail("curl", "job-role")
    assert node.bootstrap().returncode == 0
    assert "a VPC without a way out needs an endpoint for AWS STS" in node.read("var/log/cdk-training-cluster.log")


def test_a_node_without_a_jobs_role_is_as_it_was(make_node: MakeNode) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    assert not {"metadata", "credentials"} & set(node.steps)
    assert _VARIABLE not in node.read("etc/profile.d/cdk-training-cluster.sh")
    assert "credentials_url" not in node.read("etc/cdk-training-cluster/job.json")
