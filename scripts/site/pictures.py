"""Pictures of the synthesized stacks of a cluster with every part: of all of it, and of each of its areas."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.site.synthesized import FILE

from cdk_training_cluster_cli.pictures.diagram.contents import contents
from cdk_training_cluster_cli.pictures.diagram.drawing import Drawing, draw, save
from cdk_training_cluster_file import read_cluster_file


def pictures() -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture, such as `guardrails`."""
    areas = contents(read_cluster_file(FILE))
    yield "everything", _svg(draw(areas, "A cluster with every part"))
    for area in areas:
        yield area.title.lower().replace(" ", "-"), _svg(draw([area], "From a cluster with every part"))


def _svg(drawing: Drawing) -> str:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "picture.svg")
        save(drawing, file)
        return file.read_text(encoding="utf-8")
