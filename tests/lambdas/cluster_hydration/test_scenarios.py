"""The hydration function from link to last look, and what else can happen on the way."""

from cluster_contract.hydration import HydrationStep
from hydration_scene import HydrationScene

_DONE, _FAILED = HydrationStep.DONE, HydrationStep.FAILED


def test_a_data_set_is_restored_looked_at_and_told_of_once_and_then_costs_one_read_a_minute() -> None:
    scene = HydrationScene()
    scene.lustre.set_link("/data", "CREATING")
    scene.tick(3)
    assert scene.progress().step is HydrationStep.LINKING
    scene.lustre.set_link("/data", "AVAILABLE")
    found = scene.until(_DONE)
    assert (found.files, found.restored_files, found.percent) == (100, 100, 100)
    assert [one.request["action"] for one in scene.nodes.sent][-1] == "finish"
    ((title, text),) = scene.messages
    assert title == "pod: /fsx/data is hydrated"
    assert text.startswith("All 100 selected files (0.1 GiB) of /fsx/data have their contents, ")
    before = len(scene.calls)
    scene.tick(5)
    assert len(scene.calls) == before + 5
    assert [call.action for call in scene.dynamodb.calls[-5:]] == ["dynamodb:GetItem"] * 5
    assert scene.errors == []
