"""The commands of the first tutorial, all of them, on the local AWS."""

import pytest
from scripts.site import tutorial


@pytest.mark.sweep("docs")
def test_every_command_of_the_tutorial_does_what_the_page_says() -> None:
    said = tutorial.outputs()
    assert "box, 1 of 1, running" in said["training-cluster status dev-box --region us-east-1"]
