"""The tag of the node group on an Auto Scaling group, which others can change."""

import pytest

from cluster_contract.tags import NODE_GROUP_TAG
from power_scene import Scene


@pytest.mark.parametrize("tags", [("eval", "workers"), ("eval", None), (None, None), ("eval", "other")])
def test_a_tag_that_another_wrote_gives_a_group_to_no_other_node_group(tags: tuple[str | None, str | None]) -> None:
    scene = Scene(counts={"workers": 8, "eval": 4})
    groups = workers, evaluating = scene.add("workers"), scene.add("eval", maximum=8)
    scene.minute(3)
    for group, tag in zip(groups, tags, strict=True):
        del group.tags[NODE_GROUP_TAG]
        group.tags |= {NODE_GROUP_TAG: tag} if tag else {}
    scene.minute(3)
    assert (workers.in_service, evaluating.in_service) == (8, 4)
    scene.order("stop", node_groups=["eval"])
    scene.minute(3)
    assert (workers.in_service, evaluating.in_service) == (8, 0)
