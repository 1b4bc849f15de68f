"""What the library refuses is reported with its place in a file; the sentences are in the library's tables."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.rules import NodeGroupContext, node_group_problems
from cdk_training_cluster.validation.words import CLUSTER_FILE
from cdk_training_cluster_file import CapacitySettings, NodeGroupIdleSettings, NodeGroupSettings
from cdk_training_cluster_file.capacity import CALLS
from cdk_training_cluster_file.node_group_rules import place_of
from cluster_files import FACTS, RIGHT, problems
from node_group_cases_markets import MARKET_CASES
from node_group_cases_placement import PLACEMENT_CASES
from node_group_cases_purchases import PURCHASE_CASES
from node_group_cases_types import TYPE_CASES
from node_group_cases_warm_pools import WARM_POOL_CASES

ID = "cr-0a1b2c3d4e5f67890"
BLOCK = f"capacity: {{capacity_block: {{id: {ID}}}}}"
TYPES, COUNT = "[p5.48xlarge]", "count: 8"
SECOND = f"  - {{name: more, instance_types: {TYPES}, count: 2, image: latest, capacity: %s}}\n"

# What is changed in the right file (text, replacement), and the place and the beginning of what is said of it then.
BROKEN: dict[str, tuple[str, str, str]] = {
    "types": (
        TYPES,
        "[p5.48xlarge, p5e.48xlarge]",
        "9: node_groups[0].instance_types: must name exactly one type for on_demand, got",
    ),
    "a setting that is not in the file": (
        TYPES,
        "[p6e-gb200.36xlarge]",
        "9: node_groups[0].instance_types: must be sold as on-demand for on_demand, got p6e-gb200.36xlarge, which is "
        "sold as capacity-block: choose another type, or buy it with capacity_block",
    ),
    "an image": (
        TYPES,
        "[hpc7a.96xlarge]",
        "11: node_groups[0].image: AWS publishes no Deep Learning image for "
        "hpc7a.96xlarge: give an image of your own for x86_64",
    ),
    "a placement": (
        COUNT,
        f"{COUNT}\n    {BLOCK}\n    placement: cluster",
        "12: node_groups[0].placement: must be left out, or none, for capacity_block with",
    ),
    "a setting of a way to buy": (
        COUNT,
        f"{COUNT}\n    capacity: {{capacity_block: {{id: {ID}, availability_zone: us-east-1a}}}}",
        "11: node_groups[0].capacity.capacity_block.availability_zone: must be the cluster's, "
        "us-east-1b, got us-east-1a",
    ),
    "a warm pool": (
        COUNT,
        f"{COUNT}\n    warm_pool: {{size: 9}}",
        "11: node_groups[0].warm_pool.size: must be at most",
    ),
    "shared GPUs without an orchestrator": (
        COUNT,
        f"{COUNT}\n    gpu_sharing: {{mps: 2}}",
        "11: node_groups[0].gpu_sharing: must be left out with Auto Scaling groups",
    ),
    "idle nodes of a group": (
        COUNT,
        f"{COUNT}\n    capacity: spot_fleet\n    idle: {{scope: node}}",
        "12: node_groups[0].idle.scope: must be gang for spot_fleet, got node: the fleet itself chooses "
        "which of its nodes goes; give the group idle settings of its own",
    ),
    "idle nodes of all groups": (
        f"{COUNT}\n    image: latest\n",
        f"{COUNT}\n    image: latest\n    capacity: spot_fleet\nidle: {{scope: node}}\n",
        "13: idle.scope: node group 'workers': must be gang for spot_fleet, got node: the",
    ),
    "groups together": (
        f"{COUNT}\n    image: latest\n",
        f"{COUNT}\n    image: latest\n    {BLOCK}\n{SECOND % f'{{prioritized: {{reservations: [{ID}]}}}}'}",
        f"13: node_groups[1].capacity.prioritized.reservations: node groups 'workers' and 'more' must agree on what "
        f"{ID} is, got capacity_block and reservations of prioritized: it is either",
    ),
    "a group's window beside the default": (
        COUNT,
        f"{COUNT}\n    idle: {{window_minutes: 20}}",
        "11: node_groups[0].idle.window_minutes: warning must be at most its window, ",
    ),
    "the cluster's window beside the default": (
        f"{COUNT}\n    image: latest\n",
        f"{COUNT}\n    image: latest\nidle: {{window_minutes: 20}}\n",
        "12: idle.window_minutes: node group 'workers': warning must be at most its window, ",
    ),
    "a part of the cluster's idle settings, which a group's go with": (
        f"{COUNT}\n    image: latest\n",
        f"{COUNT}\n    image: latest\n    idle: {{warning_minutes: 90}}\n"
        "idle: {window_minutes: 120, utilization_below_percent: 500}\n",
        "13: idle.utilization_below_percent: must be at most 50, got 500",
    ),
    "facts about a type": (
        f"{TYPES}\n    {COUNT}\n    image: latest\n",
        f"[p9.large]\n    {COUNT}\n    image: ami-0a1b2c3d\n"
        f"instance_type_facts: [{FACTS.replace('vcpus: 2', 'vcpus: 0')}]\n",
        "12: instance_type_facts[0].vcpus: must be at least 1, got 0",
    ),
    "groups of one block": (
        f"{COUNT}\n    image: latest\n",
        f"{COUNT}\n    image: latest\n    {BLOCK}\n{SECOND % f'{{capacity_block: {{id: {ID}, instance_count: 9}}}}'}",
        "13: node_groups[1].capacity.capacity_block.id: node groups 'workers' and 'more' must have at most 9",
    ),
    "two groups of one name": (
        "    image: latest\n",
        f"    image: latest\n{SECOND.replace('more', 'workers') % 'on_demand'}",
        "12: node_groups[1].name: node_groups must have different names, got 'workers' 2 times: rename all but one",
    ),
    "a prefix in another": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /more, prefix: tokens/more}\n",
        "7: datasets[1].prefix: the datasets at /data and /more overlap: their prefixes 'tokens/' and 'tokens/more/'",
    ),
    "a whole bucket beside a part of it": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /more}\n",
        "7: datasets[1]: the datasets at /data and /more overlap: their prefixes 'tokens/' and '' lie in each other",
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), BROKEN.values(), ids=BROKEN)
def test_what_the_library_refuses_is_told_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in RIGHT
    (found,) = problems(tmp_path, RIGHT.replace(old, new))
    assert found.startswith(f"cluster.yaml:{said}")


PYTHON_WORDS = re.compile(
    r"\(\)|\{|\b(Capacity|Placement|OnIdle|Idle\w+)\.|machine_image|idle_policy|True|False| of \w+ must "
)

CASES = {**TYPE_CASES, **MARKET_CASES, **PLACEMENT_CASES, **PURCHASE_CASES, **WARM_POOL_CASES}


@pytest.mark.parametrize("rule", CASES)
def test_every_setting_and_word_of_a_rule_is_one_of_a_file(rule: str) -> None:
    for case in CASES[rule]:
        nodes = NodeGroupContext.of(case.group, case.facts, availability_zone=case.zone, words=CLUSTER_FILE)
        for problem in node_group_problems(nodes):
            # No image of a file is looked up at launch.
            assert problem.rule == "imageAtLaunch" or not PYTHON_WORDS.search(problem.message)
            call = case.group.capacity.call.removeprefix("Capacity.").removesuffix("()")
            setting, *below = place_of(problem.setting, call)
            assert setting in NodeGroupSettings.model_fields
            if setting == "capacity":
                assert below[0] in CALLS
                assert str(below[1]) in str(CapacitySettings.model_json_schema())
            assert setting != "idle" or str(below[0]) in NodeGroupIdleSettings.model_fields


# Legal files, each near to a wrong one.
LEGAL = {
    "directories and prefixes that begin alike": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /data2, prefix: tokens2/}\n",
    ),
    "one prefix of two buckets": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /more, prefix: tokens/, bucket: my-bucket}\n",
    ),
    "a reservation that is released": (
        COUNT,
        "count: 2\n    capacity: {reservation: {end: until_cancelled, on_idle: release}}",
    ),
    "as many as are reserved": (
        COUNT,
        f"{COUNT}\n    capacity: {{from_reservation: {{id: {ID}, instance_count: 8}}}}",
    ),
    "a warm pool of all": (COUNT, f"{COUNT}\n    warm_pool: {{size: 8}}"),
    "names that differ in their ends": ("    image: latest\n", f"    image: latest\n{SECOND % 'spot'}"),
    "a name like a part of the stack": ("workers", "power"),
}


@pytest.mark.parametrize(("old", "new"), LEGAL.values(), ids=LEGAL)
def test_what_is_legal_is_read(tmp_path: Path, old: str, new: str) -> None:
    assert old in RIGHT
    assert problems(tmp_path, RIGHT.replace(old, new), legal=True) == []


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        (
            f"count: 0\n    capacity: {{from_reservation: {{id: {ID}, instance_count: 1}}}}",
            "10: node_groups[0].count",
        ),
        ("capacity: {reservation: {end: until_cancelled, on_idle: release}}", "8: node_groups[0].count"),
        ("count: 0\n    warm_pool: {size: 9}", "10: node_groups[0].count"),
        ("count: 8\n    capacity: {spt: {}}\n    warm_pool: {size: 2}", "11: node_groups[0].capacity.spt"),
        ("count: 65\n    capacity: spt\n    idle: {scope: node}", "11: node_groups[0].capacity"),
        (f"count: 8\n    {BLOCK}\n    placement: clutser", "12: node_groups[0].placement"),
    ],
)
def test_what_is_wrong_by_itself_contradicts_nothing_else(tmp_path: Path, setting: str, place: str) -> None:
    (said,) = problems(tmp_path, RIGHT.replace(COUNT, setting))
    assert said.startswith(f"cluster.yaml:{place}: ")


# What is changed in the right file (text by replacement), and the places of all that is said of it then.
SEVERAL: list[tuple[dict[str, str], Sequence[str]]] = [
    (
        {TYPES: "[p5.48xlarg, g5.xlarge]", COUNT: f"{COUNT}\n    {BLOCK}\n    efa: maybe"},
        ["node_groups[0].instance_types[0]", "node_groups[0].instance_types", "node_groups[0].efa"],
    ),
    (
        {"workers": "W", TYPES: "[hpc7a.96xlarge]", COUNT: "count: 2\n    warm_pool: {size: 9}"},
        ["node_groups[0].name", "node_groups[0].warm_pool.size", "node_groups[0].image"],
    ),
    (
        {TYPES: "[hpc7a.96xlarge]", COUNT: "count: 2\n    capacity: {spt: {}}\n    warm_pool: {size: 9}"},
        ["node_groups[0].capacity.spt", "node_groups[0].warm_pool.size", "node_groups[0].image"],
    ),
    (
        {TYPES: "[5, hpc7a.96xlarge]", COUNT: "count: 2\n    warm_pool: {size: 9}"},
        ["node_groups[0].instance_types[0]", "node_groups[0].warm_pool.size", "node_groups[0].image"],
    ),
    (
        {COUNT: "count: 2\n    root_device_name: /dev/xvda\n    warm_pool: {size: 9}\n    efa: maybe"},
        ["node_groups[0].root_device_name", "node_groups[0].warm_pool.size", "node_groups[0].efa"],
    ),
    (
        {"prefix: tokens/\n": "bucket: B_\n  - {file_system_path: /data/b, prefix: b/}\n"},
        ["datasets[0].bucket", "datasets[1].file_system_path"],
    ),
    (
        {"prefix: tokens/\n": "bucket: B_\n  - {file_system_path: /b, bucket: B_}\n"},
        ["datasets[0].bucket", "datasets[1].bucket"],
    ),
]


@pytest.mark.parametrize(("changes", "places"), SEVERAL)
def test_one_mistake_hides_no_other(tmp_path: Path, changes: dict[str, str], places: Sequence[str]) -> None:
    text = RIGHT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    assert [said.split(": ")[1] for said in problems(tmp_path, text)] == places
