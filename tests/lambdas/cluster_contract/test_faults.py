"""The table of faults against lines that drivers have written, and against what NVIDIA and AWS say of each."""

import pytest

from cluster_contract.faults import FAULTS, FaultAction, FaultKind, fault_of

_A, _O, _B, _P = FaultAction.APPLICATION, FaultAction.OBSERVE, FaultAction.REBOOT, FaultAction.REPLACE
_CHANGED = "GPU recovery action changed from 0x0 (None) to"


@pytest.mark.parametrize(
    ("code", "text", "action", "repeated"),
    [
        ("79", "GPU has fallen off the bus.", _B, _P),
        ("13", "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0)", _A, _A),
        ("64", "Row Remapper: Failed to remap row", _P, _P),
        ("74", "NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", _P, _P),
        ("74", "NVLink: fatal error detected on link 2(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", _B, _P),
        ("74", "NVLink: error detected on link 2(0x40000000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", _O, _O),
        ("74", "NVLink: error detected on link 2(0x40000000, 0x0, 0x1, 0x0, 0x0, 0x0, 0x0)", _B, _P),
        ("145", "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)", _O, _O),
        ("149", "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)", _B, _P),
        ("149", "NETIR_LINK_EVT Non-Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)", _O, _O),
        ("154", f"{_CHANGED} 0x2 (Node Reboot Required)", _B, _P),
        ("154", f"{_CHANGED} 0x1 (GPU Reset Required)", _B, _P),
        # Jobs that use several GPUs have to end; what the GPU needs then, the driver says after that.
        ("154", f"{_CHANGED} 0x3 (Drain P2P)", _B, _P),
        # Of rows that wait to be remapped it is said too: the check `recovery_action` knows whether there are some.
        ("154", f"{_CHANGED} 0x4 (Drain and Reset)", _O, _O),
        ("154", "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)", _O, _O),
        ("9999", "", _O, _O),
    ],
)
def test_the_action_of_an_xid(code: str, text: str, action: FaultAction, repeated: FaultAction) -> None:
    fault = fault_of(FaultKind.XID, code)
    assert (fault.action_for(text), fault.action_for(text, repeated=True)) == (action, repeated)


@pytest.mark.parametrize(
    ("text", "action", "repeated"),
    [
        ("Fatal, Link 32 LTSSM Fault Up", _B, _P),
        ("Non-fatal, Link 32 TLC buffer", _O, _O),
        ("Non-Fatal, Link 32 TLC buffer", _O, _O),
        ("Data {0x1c0, 0x5c8a}", _O, _O),
    ],
)
def test_the_action_of_an_nvswitch_s_error(text: str, action: FaultAction, repeated: FaultAction) -> None:
    fault = fault_of(FaultKind.SXID, "20034")
    assert (fault.action_for(text), fault.action_for(text, repeated=True)) == (action, repeated)


def test_each_row_has_its_document_and_only_what_drains_is_replaced_the_second_time() -> None:
    for fault in FAULTS.values():
        assert fault.source.startswith(
            ("https://docs.nvidia.com/", "https://docs.aws.amazon.com/", "https://awsdocs-neuron.")
        )
        assert not fault.meaning.endswith(".")
        assert fault.repeat in {None, _P}
        assert fault.repeat is None or _B in (fault.action, *(rule.action for rule in fault.rules))


def test_what_amazon_ecs_replaces_is_at_least_rebooted() -> None:
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/managed-instances-gpu-auto-repair.html
    replaced = (46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 136, 140, 142, 143, 151, 155, 156, 158)
    assert all(FAULTS[FaultKind.XID, str(code)].action.drains for code in replaced)
