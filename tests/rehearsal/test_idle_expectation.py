"""What has to become of idle nodes, from what they run in and the function's settings."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from cluster_contract.codec import encode
from cluster_contract.idle import Policy
from idle_stories import node, settings
from rehearsal.idle_expectation import Fate, IdleExpectation, IdleNode, idle_nodes

_HELD = {"reserved": True}
_OFF, _DRY, _ALONE = ({"policy": each} for each in ({"off": True}, {"dry_run": True}, {"scope": "node"}))


_FLEET = "spot_fleet sfr-1"
_SLURM = "pcs_compute_node_group+ pcs_1/pcs_2"


def _fates(group: Mapping[str, Any], *nodes: IdleNode, **policy: Any) -> list[str]:
    told = IdleExpectation(settings({"workers": group}, **policy), nodes)
    return [told.fate(one).value for one in told.nodes]


@pytest.mark.parametrize(
    ("group", "policy", "reserved", "fates"),
    [
        ({}, {}, [False, False], ["stopped", "stopped"]),
        ({}, {}, [True, True], ["reserved", "reserved"]),
        ({}, {}, [True, False], ["stopped", "stopped"]),
        ({"owner": _FLEET}, {}, [False, False], ["stopped", "stopped"]),
        ({"owner": _SLURM}, {}, [False, False], ["orchestrator", "orchestrator"]),
        ({"release": True}, {}, [True, True], ["stopped", "stopped"]),
        (_ALONE, {}, [True, False], ["reserved", "stopped"]),
        ({**_ALONE, "release": True}, {}, [True, False], ["reserved", "stopped"]),
        (_DRY, {}, [False, False], ["dry run", "dry run"]),
        (_DRY, {}, [True, True], ["reserved", "reserved"]),
        (_OFF, {}, [False, True], ["keep", "keep"]),
        ({}, {"off": True}, [False, True], ["keep", "keep"]),
        ({"policy": {"off": False}}, {"off": True}, [False, True], ["stopped", "stopped"]),
    ],
)
def test_what_becomes_of_idle_nodes(
    group: dict[str, Any], policy: dict[str, Any], reserved: list[bool], fates: list[str]
) -> None:
    nodes = [node(f"i-{place}", reserved=one) for place, one in enumerate(reserved)]
    assert _fates(group, *nodes, **policy) == fates


def test_a_group_that_the_settings_do_not_name_goes_by_the_policy_of_the_cluster() -> None:
    told = IdleExpectation(settings({}, window=900), [node("i-1", "strays")])
    assert (told.fate(told.nodes[0]), told.policy(told.nodes[0]).window) == (Fate.STOPPED, timedelta(minutes=15))


def test_nodes_of_a_group_go_together_unless_each_goes_by_itself() -> None:
    nodes = [node("i-2", "b"), node("i-1", "b"), node("i-4", "a"), node("i-3", "a")]
    told = IdleExpectation(settings({"a": _ALONE, "b": {}}), nodes)
    assert [[one.id for one in unit] for unit in told.units()] == [["i-3"], ["i-4"], ["i-1", "i-2"]]


def test_the_settings_are_those_of_the_deployed_function() -> None:
    said = settings({"workers": {"policy": {"warning": 600}}}, namespace="Others", max_stops=7)
    configuration = {"Environment": {"Variables": {"CLUSTER_IDLE_SETTINGS": json.dumps(encode(said))}}}
    told = IdleExpectation.of_function(configuration, [node("i-1")])
    assert told.policy(told.nodes[0]) == Policy(warning=timedelta(minutes=10))
    assert (told.namespace, told.max_stops) == ("Others", 7)
    assert IdleExpectation(settings({}), []).namespace == "CdkTrainingCluster/Nodes/pod"


@pytest.mark.parametrize(
    ("more", "reserved"),
    [
        ({}, False),
        ({"InstanceLifecycle": "spot"}, False),
        ({"CapacityReservationId": "cr-1"}, True),
        ({"CapacityBlockId": "cb-1"}, True),
        ({"InstanceLifecycle": "capacity-block"}, True),
        ({"InstanceLifecycle": "interruptible-capacity-reservation"}, True),
    ],
)
def test_what_is_read_says_what_is_reserved(more: dict[str, str], reserved: bool) -> None:
    groups = [{"name": "b", "instance_ids": ["i-2"]}, {"name": "a", "instance_ids": ["i-1"]}]
    (one,) = idle_nodes(groups, [{"InstanceId": "i-1", "InstanceType": "p5.48xlarge", **more}])
    assert one == IdleNode(id="i-1", instance_type="p5.48xlarge", node_group="a", reserved=reserved)


@pytest.mark.parametrize(
    ("instance_type", "metric"),
    [
        ("g5.xlarge", "nvidia_smi_utilization_gpu"),
        ("trn1.32xlarge", "neuroncore_utilization"),
        ("dl1.24xlarge", "accelerator_utilization"),
        ("vt1.3xlarge", None),
    ],
)
def test_what_a_node_reports_goes_by_its_accelerators(instance_type: str, metric: str | None) -> None:
    assert node("i-1", instance_type=instance_type).utilization == metric
