"""The cluster that repairs are tested on: one node group of eight nodes, in service."""

import pytest

from fake_auto_scaling import FakeGroup
from health_scene import HealthScene


@pytest.fixture
def scene() -> HealthScene:
    return HealthScene()


@pytest.fixture
def group(scene: HealthScene) -> FakeGroup:
    return scene.start()
