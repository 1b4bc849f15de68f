"""The kinds of file systems: which sizes FSx makes."""

import pytest

from cdk_training_cluster.storage.deployment_types import ThroughputTier, kind_of


def _tier(deployment_type: str, storage_type: str, mbps: int | None) -> ThroughputTier:
    kind = kind_of(deployment_type, storage_type)
    assert kind is not None
    tier = kind.tier(mbps)
    assert tier is not None
    return tier


@pytest.mark.parametrize(
    ("kind", "efa", "taken", "refused"),
    [
        (("PERSISTENT_2", "SSD", 250), False, [1200, 2400, 4800], [0, -2400, 1201, 3600]),
        (("PERSISTENT_2", "SSD", 125), True, [38400, 76800], [1200, 2400, 19200]),
        (("PERSISTENT_2", "SSD", 250), True, [19200], [9600]),
        (("PERSISTENT_2", "SSD", 500), True, [9600], [4800]),
        (("PERSISTENT_2", "SSD", 1000), True, [4800], [1200, 2400]),
        (("PERSISTENT_1", "SSD", 50), False, [1200, 2400], [3600]),
        (("PERSISTENT_1", "HDD", 12), False, [6000, 12000], [1200, 1800]),
        (("PERSISTENT_1", "HDD", 40), False, [1800, 3600], [1200, 6000]),
        (("SCRATCH_2", "SSD", None), False, [1200, 2400, 4800], [3600]),
        (("SCRATCH_1", "SSD", None), False, [1200, 2400, 3600, 7200], [4800]),
    ],
)
def test_sizes_that_fsx_makes(
    kind: tuple[str, str, int | None], efa: bool, taken: list[int], refused: list[int]
) -> None:
    tier = _tier(*kind)
    assert [tier.takes(gib, efa=efa) for gib in taken + refused] == [True] * len(taken) + [False] * len(refused)
    # The smallest that holds something is what FSx takes, and never less.
    assert [tier.smallest_gib(gib, efa=efa) for gib in taken] == taken
    assert all(tier.takes(tier.smallest_gib(gib, efa=efa), efa=efa) for gib in refused)


def test_fsx_has_no_hdd_of_the_type_persistent_2() -> None:
    assert kind_of("PERSISTENT_2", "HDD") is None
