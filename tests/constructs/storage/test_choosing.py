"""The chooser: each file system that it proposes is legal and enough, no smaller one is; what it recommends."""

import re
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk.assertions import Template
from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster import ClusterNetwork, TrainingFileSystem, choose_storage
from cdk_training_cluster.storage import StorageChoice, StorageOption
from cdk_training_cluster.storage.file_system_rules import file_system_problems
from examples import PROJECT
from local_aws.refusal import Refusal
from local_aws.services.lustre_rules import check_file_system
from synthesis import ZONE, new_stack

# Every capacity that FSx takes is a multiple of this.
_FINEST_GIB = 600

choices = st.builds(
    choose_storage,
    dataset_gib=st.integers(1, 200_000),
    gbps=st.decimals("0.1", 400, places=1).map(float),
    nodes=st.integers(1, 64),
    instance_type=st.sampled_from(["p5.48xlarge", "p4de.24xlarge", "trn1.32xlarge", "g5.xlarge"]),
)


def is_made(option: StorageOption, gib: int) -> bool:
    """Tell whether FSx makes a file system of a capacity, as the local AWS knows its rules."""
    made = option.made
    asked = {
        "DeploymentType": made.deployment_type,
        "PerUnitStorageThroughput": made.throughput_mbps_per_tib,
        "MetadataConfiguration": {"Mode": "AUTOMATIC"} if made.efa_enabled else None,
        "EfaEnabled": made.efa_enabled,
        **({"DriveCacheType": "NONE"} if made.drive_cache_type else {}),
    }
    try:
        check_file_system(made.storage_type, gib, asked)
    except Refusal:
        return False
    return True


def is_enough(option: StorageOption, gib: int) -> bool:
    made = replace(option.made, storage_capacity_gib=gib)
    return gib >= option.need.dataset_gib and (made.total_mbps or 0) >= option.need.gbps * 1000


@given(choice=choices)
def test_each_is_legal_and_no_smaller_legal_one_is_enough(choice: StorageChoice) -> None:
    for option in choice.options:
        assert list(file_system_problems(option.made)) == []
        gib, mbps = option.capacity_gib, option.made.throughput_capacity
        if gib is not None:
            assert is_made(option, gib)
            assert is_enough(option, gib)
            smaller = range((gib - 1) // _FINEST_GIB * _FINEST_GIB, 0, -_FINEST_GIB)
            legal = next((each for each in smaller if is_made(option, each)), 0)
            assert not is_enough(option, legal)
        else:
            assert mbps is not None
            assert mbps - 4000 < choice.need.gbps * 1000 <= mbps


@pytest.mark.parametrize(("gib", "gbps"), [(1, 0.1), (40960, 20)])
def test_the_construct_and_fsx_take_the_settings_of_each(gib: int, gbps: float) -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    for option in choose_storage(dataset_gib=gib, gbps=gbps, nodes=8).options:
        settings: dict[str, Any] = dict(option.settings)
        TrainingFileSystem(stack, option.name.replace("/", " "), network=network, **settings)
    made = Template.from_stack(stack).find_resources("AWS::FSx::FileSystem")
    assert len(made) == len(choose_storage(dataset_gib=gib, gbps=gbps, nodes=8).options)
    for resource in made.values():
        properties = resource["Properties"]
        capacity = properties.get("StorageCapacity")
        check_file_system(properties["StorageType"], capacity, properties["LustreConfiguration"])


@given(choice=choices)
def test_what_is_recommended_can_be_linked_keeps_data_and_is_fast_enough(choice: StorageChoice) -> None:
    best, need = choice.recommended, choice.need
    if best is None:
        assert need.gbps > need.reachable_gbps(efa=need.efa_clients)
    else:
        assert best in choice.options
        assert (best.kind.links, best.kind.persistent, best.fast_enough) == (True, True, True)


_RECOMMENDED = {
    "EFA where AWS recommends it": ((40960, 20, 8, "p5.48xlarge"), ("PERSISTENT_2 SSD 250 MB/s/TiB, EFA", 96000)),
    "no EFA for less": ((40960, 10, 8, "p5.48xlarge"), ("PERSISTENT_2 SSD 250 MB/s/TiB", 43200)),
    "EFA where a node cannot read it otherwise": (
        (1200, 80, 1, "p5.48xlarge"),
        ("PERSISTENT_2 SSD 1000 MB/s/TiB, EFA", 86400),
    ),
    "no EFA where the nodes fall back to TCP": (
        (40960, 20, 8, "p4de.24xlarge"),
        ("PERSISTENT_2 SSD 250 MB/s/TiB", 84000),
    ),
    "nothing where two interfaces carry less": ((1200, 26, 1, "trn1.32xlarge"), None),
    "no EFA for more nodes than it has connections for": (
        (1200, 100, 129, "p5.48xlarge"),
        ("PERSISTENT_2 SSD 1000 MB/s/TiB", 103200),
    ),
    "nothing where the nodes cannot read it": ((40960, 20, 1, "p4de.24xlarge"), None),
}


@pytest.mark.parametrize(("given", "recommended"), _RECOMMENDED.values(), ids=_RECOMMENDED)
def test_the_recommendation(given: tuple[int, float, int, str], recommended: tuple[str, int] | None) -> None:
    size, gbps, nodes, name = given
    best = choose_storage(dataset_gib=size, gbps=gbps, nodes=nodes, instance_type=name).recommended
    assert (None if best is None else (best.name, best.capacity_gib)) == recommended


def test_the_document_s_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (PROJECT / "docs/storage.md").read_text(encoding="utf-8")
    (code,) = (
        each for each in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "choose" in each
    )
    exec(compile(code, "docs/storage.md", "exec"), {})  # noqa: S102 - our own document
    assert capsys.readouterr().out.startswith("PERSISTENT_2 SSD 250 MB/s/TiB, EFA it has the lowest known price")
