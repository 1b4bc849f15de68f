"""What the tests of an exceeded budget share."""

import pytest

from fake_auto_scaling import FakeGroup
from spend_scene import SpendScene


@pytest.fixture
def group(scene: SpendScene) -> FakeGroup:
    """The two nodes of a test's own `scene`, which the function has seen."""
    group = scene.deploy(2)
    scene.tick(0)
    return group
