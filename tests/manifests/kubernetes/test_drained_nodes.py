"""New pods stay off a drained node: the script that taints it, against an API server, and what it may do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from admission_policies import POLICY, is_matched, refusals
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.drained_nodes import KEY
from cdk_training_cluster_manifests.kubernetes.drained_taint import KubernetesNode, Watch
from cluster_contract.node_files import DRAIN
from fake_kubernetes_api import FakeKubernetesApi
from kubernetes_folder import FOLDERS, objects, wanted

_SPOT = {"key": "cdk-training-cluster/spot", "value": "true", "effect": "NoSchedule"}
_OPERATORS = {"key": "example.com/reserved", "effect": "NoExecute", "timeAdded": "2026-11-23T20:00:00Z"}
_OWN = {"key": KEY, "value": "xid-79", "effect": "NoSchedule"}
_WHY = "Xid 79 of GPU 3: the GPU has fallen off the bus (reboot)"
_CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"

# Argo CD's Applications have the values of charts, whose daemon sets run on drained nodes too.
_DAEMONS = ("Application", "DaemonSet")

every_folder = pytest.mark.parametrize("cluster", [pytest.param(each, id=name) for name, each in FOLDERS.items()])


class _Machine:
    """A node with its watchdog's folder, and what watches that."""

    def __init__(self, api: FakeKubernetesApi, address: tuple[str, int], root: Path) -> None:
        self.api, self.address, self.credentials, self.folder = api, address, root, root / "drain"
        self.now = 1_000.0
        self.restart()

    def restart(self) -> None:
        node = KubernetesNode(
            "node-1", key=KEY, address=self.address, credentials=self.credentials, timeout_seconds=0.5
        )
        self.watch = Watch(self.folder, node)

    def drain(self, name: str = "xid-79", text: str = f"{_WHY}\n{{}}\n") -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def look(self, times: int = 1) -> list[float]:
        waited = []
        for _ in range(times):
            waited.append(self.watch.look(self.now))
            self.now += waited[-1]
        return waited


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[_Machine]:
    api = FakeKubernetesApi(_SPOT, _OPERATORS, annotations={"other": "x"})
    with api.serving(tmp_path) as address:
        yield _Machine(api, address, tmp_path)


def test_a_drained_node_has_the_taint_and_the_reason_until_it_is_drained_no_more(machine: _Machine) -> None:
    machine.look()
    machine.drain()
    machine.look()
    assert machine.api.taints == [_SPOT, _OPERATORS, _OWN]
    assert machine.api.annotations == {"other": "x", KEY: _WHY}
    (machine.folder / "xid-79").unlink()
    machine.look()
    assert machine.api.taints == [_SPOT, _OPERATORS]
    assert machine.api.annotations == {"other": "x"}


def test_every_reason_is_named_and_the_node_is_drained_until_the_last_has_gone(machine: _Machine) -> None:
    machine.drain()
    machine.drain("operator", "ec2-user drained the node: moving the rack\n{}\n")
    machine.drain(".spot", "not yet whole")
    machine.look()
    assert machine.api.taints[-1]["value"] == "operator"
    assert machine.api.annotations[KEY] == f"ec2-user drained the node: moving the rack; {_WHY}"
    (machine.folder / "operator").unlink()
    machine.look()
    assert machine.api.taints[-1] == _OWN


def test_a_node_that_has_rebooted_loses_the_taint_once_it_is_verified(machine: _Machine) -> None:
    machine.drain()
    machine.look()
    tainted = machine.api.node
    (machine.folder / "xid-79").unlink()
    machine.folder.rmdir()
    machine.restart()
    machine.look()
    assert machine.api.node == tainted
    machine.folder.mkdir()
    machine.look()
    assert machine.api.taints == [_SPOT, _OPERATORS]


def test_what_cannot_be_read_changes_nothing(machine: _Machine) -> None:
    machine.drain()
    machine.look()
    before = machine.api.node
    (machine.folder / "xid-79").unlink()
    machine.folder.rmdir()
    machine.folder.write_text("no folder")
    machine.look(3)
    assert machine.api.node == before


@pytest.mark.parametrize("name", ["check-gpu_lost", "Xid 79: 7", "_" * 80, "x" * 62 + "..", "ü"])
def test_any_file_makes_a_taint_that_kubernetes_takes(name: str, machine: _Machine) -> None:
    machine.drain(name, "")
    machine.look()
    assert machine.api.taints[-1]["key"] == KEY
    assert machine.api.annotations[KEY] == name
    patches = machine.api.verbs.count("patch")
    machine.restart()
    machine.look()
    assert machine.api.verbs.count("patch") == patches == 1


def test_a_taint_that_another_sets_meanwhile_is_kept(machine: _Machine) -> None:
    other = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    api = machine.api
    api.meanwhile = {"metadata": {}, "spec": {"taints": [_SPOT, other]}}
    machine.drain()
    machine.look()
    assert api.taints == [_SPOT, other]
    machine.look()
    assert api.taints == [_SPOT, other, _OWN]


def test_a_new_token_is_read_when_kubernetes_has_renewed_it(machine: _Machine) -> None:
    machine.look()
    machine.api.renewals += 1
    machine.drain()
    machine.look()
    assert machine.api.taints == [_SPOT, _OPERATORS]
    (machine.credentials / "token").write_text(f"{machine.api.token}\n")
    machine.look()
    assert machine.api.taints[-1] == _OWN


@pytest.mark.parametrize("status", [0, 403, 404, 409, 422, 429, 500, 503])
def test_a_server_that_does_not_take_it_is_asked_again_ever_more_seldom(
    status: int, machine: _Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.drain()
    machine.look()
    (machine.folder / "xid-79").unlink()
    machine.api.status = status
    assert machine.look(4) == [10, 20, 30, 30]
    assert machine.api.taints[-1] == _OWN
    assert capsys.readouterr().out.count("The node's taint stays as it is for 30 seconds: ") == 2
    machine.api.status = None
    assert machine.look() == [5]
    assert machine.api.taints == [_SPOT, _OPERATORS]


def test_a_server_of_another_authority_gets_no_token(machine: _Machine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with FakeKubernetesApi().serving(other):
        (machine.credentials / "ca.crt").write_bytes((other / "ca.crt").read_bytes())
    machine.look()
    assert machine.api.verbs == []


def test_a_taint_that_was_removed_by_hand_comes_back_and_the_server_is_seldom_asked(machine: _Machine) -> None:
    machine.drain()
    machine.look()
    machine.api.patch({"metadata": {}, "spec": {"taints": None}})
    asked = len(machine.api.verbs)
    machine.look(59)
    assert (machine.api.taints, len(machine.api.verbs)) == ([], asked)
    machine.look()
    assert machine.api.taints == [_OWN]
    machine.look(59)
    assert len(machine.api.verbs) == asked + 2


def test_the_daemon_set_taints_its_node_and_leaves_it_tainted_when_it_ends(tmp_path: Path) -> None:
    (container,) = _pod(wanted())["containers"]
    assert "$(" not in str(container["command"])  # Kubernetes would replace it
    (tmp_path / "drain").mkdir()
    (tmp_path / "drain/xid-79").write_text(_WHY)
    python, *arguments = [
        each.replace(DRAIN, f"{tmp_path}/drain").replace(_CREDENTIALS, str(tmp_path)) for each in container["command"]
    ]
    assert python == "python3"
    api = FakeKubernetesApi()
    with api.serving(tmp_path) as (host, port):
        given = {"NODE_NAME": "node-1", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
        assert {each["name"] for each in container["env"]} | {*given} == {*given}
        running = subprocess.Popen([sys.executable, *arguments], env={**os.environ, **given}, stdout=subprocess.PIPE)
        assert api.patched.wait(60)
        assert running.stdout is not None
        assert running.stdout.readline().decode() == f"The node is tainted: {_WHY}\n"
        running.terminate()
        assert running.wait(60) == 0
    assert api.taints == [_OWN]
    (role,) = objects(wanted(), "ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": api.verbs}]


def _pod(cluster: KubernetesCluster) -> dict[str, Any]:
    (daemon_set,) = objects(cluster, "DaemonSet")
    found: dict[str, Any] = daemon_set["spec"]["template"]["spec"]
    return found


@every_folder
def test_it_runs_on_every_node_with_a_watchdog_whatever_taints_that_has(cluster: KubernetesCluster) -> None:
    pod = _pod(cluster)
    assert pod["tolerations"] == [{"operator": "Exists"}]
    ((term,),) = (
        each["matchExpressions"]
        for each in pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
    )
    assert term == {
        "key": cluster.groups[0].label,
        "operator": "In",
        "values": [each.name for each in cluster.groups],
    }


@every_folder
def test_no_pod_of_a_job_tolerates_the_taint(cluster: KubernetesCluster) -> None:
    found = [each for made in objects(cluster) if made["kind"] not in _DAEMONS for each in _tolerations(made)]
    assert found
    assert {each.get("key", KEY) for each in found} <= {"nvidia.com/gpu", "aws.amazon.com/neuron", _SPOT["key"]}


def _tolerations(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield from value.get("tolerations", [])
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _tolerations(each)


_NODE_2 = {"authentication.kubernetes.io/node-name": ["node-2"]}


@pytest.mark.parametrize(
    ("change", "claims", "allowed"),
    [
        ({"spec": {"taints": [_SPOT, _OWN]}}, None, True),
        ({"metadata": {"annotations": {KEY: _WHY}}}, None, True),
        ({"spec": {"taints": [_SPOT, _OWN]}}, _NODE_2, False),
        ({"spec": {"taints": [_SPOT, _OWN]}}, {}, False),
        ({"spec": {"taints": [_OWN]}}, None, False),
        ({"spec": {"taints": [_SPOT, _OPERATORS]}}, None, False),
        ({"spec": {"unschedulable": True}}, None, False),
        ({"metadata": {"annotations": {"new": "x"}}}, None, False),
        ({"metadata": {"annotations": {"other": "y"}}}, None, False),
        ({"metadata": {"annotations": {"other": None}}}, None, False),
        ({"metadata": {"labels": {"zone": "b"}}}, None, False),
        ({"metadata": {"labels": None}}, None, False),
        ({"metadata": {"finalizers": ["x"]}}, None, False),
        ({"metadata": {"ownerReferences": [{"uid": "x"}]}}, None, False),
    ],
)
def test_the_policy_allows_its_own_taint_and_annotation_of_its_own_node(
    change: dict[str, Any], claims: dict[str, list[str]] | None, allowed: bool
) -> None:
    kinds = (POLICY, f"{POLICY}Binding", "ServiceAccount")
    made = [each for each in objects(wanted(), *kinds) if each["metadata"]["name"] == "cdk-training-cluster-drained"]
    policy, binding, account = sorted(made, key=lambda each: kinds.index(each["kind"]))
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    user = "system:serviceaccount:{namespace}:{name}".format(**account["metadata"])
    api = FakeKubernetesApi(_SPOT, annotations={"other": "x"})
    before = api.node
    api.patch({"metadata": {}, "spec": {}, **change})
    extra = {"authentication.kubernetes.io/node-name": ["node-1"]} if claims is None else claims
    data = {
        "object": api.node,
        "oldObject": before,
        "request": {"userInfo": {"username": user, "extra": extra}},
    }
    assert is_matched(policy["spec"], data)
    assert (refusals(policy["spec"], data) == []) is allowed
    data["request"]["userInfo"]["username"] = "system:node:node-1"
    assert not is_matched(policy["spec"], data)
