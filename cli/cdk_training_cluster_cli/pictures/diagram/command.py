"""The command `diagram`: reads a cluster file and writes pictures."""

from datetime import UTC, datetime
from pathlib import Path

from cdk_training_cluster_cli.pictures.diagram.contents import contents
from cdk_training_cluster_cli.pictures.diagram.drawing import draw, save
from cdk_training_cluster_file import read_cluster_file, warn_of_past_ends


def run(file: Path, *, svg: Path | None, png: Path | None) -> list[Path]:
    """Draw the stacks of a cluster file.

    Args:
        file: The cluster file.
        svg: Where the SVG goes. None with no `png`: beside the cluster file.
        png: Where the PNG goes. None: nowhere.

    Raises:
        ClusterFileError: The file is wrong.
        ValueError: A construct refuses its settings, or a picture cannot be written.
    """
    targets = [each for each in (svg, png) if each is not None] or [file.with_suffix(".svg")]
    for wanted, suffix in ((svg, ".svg"), (png, ".png")):
        if wanted is not None and wanted.suffix.lower() != suffix:
            raise ValueError(f"--{suffix[1:]} must name a {suffix} file, got {str(wanted)!r}")
    cluster = read_cluster_file(file)
    warn_of_past_ends(file, cluster, datetime.now(UTC))
    drawing = draw(contents(cluster), f"{cluster.name} in {cluster.availability_zone}")
    for target in targets:
        save(drawing, target)
    return targets
