"""What the power function derives of its settings; the codec's own tests hold what is read and refused."""

from cluster_contract.owners import OwnerKind, OwnerSettings, owners_of
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings


def test_what_owns_and_what_sells_the_nodes_of_each_group_is_known() -> None:
    settings = PowerFunctionSettings(
        cluster="pod",
        groups={
            "any": PowerGroupSettings(count=3, listed=("cr-5",), blocks=("cr-4",)),
            "extras": PowerGroupSettings(count=4, owner=OwnerSettings.spot_fleet("sfr-1")),
            "held": PowerGroupSettings(count=2, reservation="cr-2"),
            "pod": PowerGroupSettings(count=8, block="cr-1"),
            "workers": PowerGroupSettings(count=8),
        },
    )

    assert owners_of(OwnerKind.SPOT_FLEET, settings.groups) == {"extras": OwnerSettings.spot_fleet("sfr-1")}
    assert owners_of(OwnerKind.EKS_NODEGROUP, settings.groups) == {}
    assert settings.reservations == {"any": ("cr-4", "cr-5"), "held": ("cr-2",), "pod": ("cr-1",)}
