"""What the bootstrap's tests share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from node_sandbox import NodeSandbox

MakeNode = Callable[..., NodeSandbox]


@pytest.fixture
def make_node(tmp_path: Path) -> MakeNode:
    """A node with its scripts in place, made to order."""

    def make(**arguments: Any) -> NodeSandbox:
        node = NodeSandbox(tmp_path, **arguments)
        node.install_scripts()
        return node

    return make
