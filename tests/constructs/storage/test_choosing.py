"""The chooser: each file system that it proposes is legal and enough, no smaller one is; what it recommends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster import choose_storage
from cdk_training_cluster.storage import StorageChoice, StorageOption

# Every capacity that FSx takes is a multiple of this.
_FINEST_GIB = 600

choices = st.builds(
    choose_storage,
    dataset_gib=st.integers(1, 200_000),
    gbps=st.decimals("0.1", 400, places=1).map(float),
    nodes=st.integers(1, 64),
    instance_type=st.sampled_from(["p5.48xlarge", "p4de.24xlarge", "trn1.32xlarge", "g5.xlarge"]),
)


def legal_sizes(option: StorageOption) -> list[int]:
    """Return the legal sizes below an option's, and its own."""
    assert option.capacity_gib is not None
    assert option.tier is not None
    sizes = range(_FINEST_GIB, option.capacity_gib + _FINEST_GIB, _FINEST_GIB)
    return [gib for gib in sizes if option.tier.takes(gib, efa=option.efa)]


def enough(option: StorageOption, gib: int) -> bool:
    assert option.tier is not None
    return gib >= option.need.dataset_gib and gib * option.tier.mbps_per_tib >= option.need.gbps * 1000 * 1024


@given(choice=choices)
def test_each_is_the_smallest_legal_one_that_is_enough(choice: StorageChoice) -> None:
    for option in choice.options:
        if option.tier is not None:
            *smaller, own = legal_sizes(option)
            assert own == option.capacity_gib
            assert [gib for gib in (*smaller[-1:], own) if enough(option, gib)] == [own]
        else:
            step = option.kind.throughput_step_mbps
            assert step is not None
            assert option.throughput_mbps is not None
            assert option.throughput_mbps % step == 0
            assert option.throughput_mbps - step < choice.need.gbps * 1000 <= option.throughput_mbps


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
    "nothing where the nodes cannot read it": ((40960, 20, 1, "p4de.24xlarge"), None),
}


@pytest.mark.parametrize(("given", "recommended"), _RECOMMENDED.values(), ids=_RECOMMENDED)
def test_the_recommendation(given: tuple[int, float, int, str], recommended: tuple[str, int] | None) -> None:
    size, gbps, nodes, name = given
    best = choose_storage(dataset_gib=size, gbps=gbps, nodes=nodes, instance_type=name).recommended
    assert (None if best is None else (best.name, best.capacity_gib)) == recommended
