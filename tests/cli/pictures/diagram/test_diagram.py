"""Diagrams of clusters: what they say, that it is legible, and that the same cluster gives the same bytes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.pictures.diagram.boxes import Box
from cdk_training_cluster_cli.pictures.diagram.contents import contents
from cdk_training_cluster_cli.pictures.diagram.drawing import Drawing, draw, save
from cdk_training_cluster_file import read_cluster_file
from examples import EXAMPLES, PROJECT, swept

_LONG = "arn:aws:ssm:us-east-1:111122223333:parameter/" + "a" * 300
_GROUP = "  - {{name: a-group-with-a-long-name-{}, instance_types: [p5.48xlarge], count: 2, image: latest}}\n"


def _texts(boxes: list[Box]) -> Iterator[str]:
    for box in boxes:
        yield box.title
        yield from box.lines
        yield from _texts(list(box.inner))


def _assert_legible(drawing: Drawing) -> None:
    """Measure with the renderer that makes the pictures: each text lies in its box, and on no other text or box."""
    canvas = FigureCanvasAgg(drawing.figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    boxes = {id(box): box.get_window_extent(renderer) for box in drawing.boxes}
    texts = [(text.get_window_extent(renderer), boxes[id(box)], text.get_text()) for text, box in drawing.texts]
    for extent, box, text in texts:
        assert box.x0 <= extent.x0 <= extent.x1 <= box.x1, text
        assert box.y0 <= extent.y0 <= extent.y1 <= box.y1, text
    by_place = sorted((text for text in texts if text[2]), key=lambda each: each[0].y0)
    for number, (extent, _, text) in enumerate(by_place):
        for other, _, other_text in by_place[number + 1 :]:
            if other.y0 >= extent.y1:
                break
            assert not _overlap(extent, other), f"{text!r} lies on {other_text!r}"


def _overlap(one: Bbox, other: Bbox) -> bool:
    return bool(one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)


@pytest.mark.parametrize("example", [swept(each, ("base-pod", "spot-elastic")) for each in EXAMPLES])
def test_every_example_is_legible(example: str) -> None:
    cluster = read_cluster_file(PROJECT / example)
    boxes = contents(cluster)
    said = set(_texts(boxes))
    jobs = ["Jobs"] * (cluster.orchestrator.engine is not None)
    titles = ["Network and nodes", *jobs, "Storage in S3 and state", "Guardrails", "Money"]
    assert [box.title for box in boxes] == titles
    for group in cluster.node_groups:
        assert any(text.startswith(f"{group.name}: {group.count} x ") for text in said)
    assert "May: sns Publish" not in next(box.lines for box in boxes[-2].inner if box.title == "Power function")
    _assert_legible(draw(boxes, cluster.name))


def test_each_subnet_is_shown_with_its_way_out() -> None:
    (network,) = contents(read_cluster_file(PROJECT / "clusters/base-pod.yaml"))[0].inner
    assert {box.title: box.lines[0] for box in network.inner} == {
        "Public subnet 10.0.0.0/24 in us-east-1b": "Internet gateway · NAT gateway with an Elastic IP address",
        "Node subnet 10.0.128.0/17 in us-east-1b": "Way out: the NAT gateway",
        "Subnet of the control plane 10.0.1.0/24 in us-east-1a": "No way out",
    }


@pytest.mark.parametrize("count", [7, pytest.param(50, marks=pytest.mark.sweep)])
def test_many_groups_are_legible(count: int, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    groups = "".join(map(_GROUP.format, range(count)))
    file.write_text(f"name: many\navailability_zone: us-east-1b\nnode_groups:\n{groups}")
    boxes = contents(read_cluster_file(file))
    assert sum(text.endswith(": 2 x p5.48xlarge") for text in _texts(boxes)) == count
    _assert_legible(draw(boxes, "many"))


def test_long_texts_are_folded_in_narrow_boxes() -> None:
    inner = [
        Box(title=f"box {number} {_LONG}", lines=[_LONG, "", "$1 and $2 " * 30], columns=4) for number in range(12)
    ]
    drawing = draw([Box(title="Many", inner=inner, columns=8)], "heading")
    assert len(drawing.boxes) == 14
    _assert_legible(drawing)


def test_the_same_boxes_are_the_same_bytes(tmp_path: Path) -> None:
    for suffix in ("svg", "png"):
        files = [tmp_path / f"{number}.{suffix}" for number in range(2)]
        for file in files:
            save(draw([Box(title="It", lines=["a line"])], "heading"), file)
        first, second = (file.read_bytes() for file in files)
        assert first == second
        assert b"<dc:date>" not in first


def test_the_command_says_what_it_wrote_and_what_it_cannot_write(tmp_path: Path) -> None:
    def ran(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(training_cluster, ["diagram", str(PROJECT / "clusters/dev-box.yaml"), *arguments])
        return result.exit_code, result.stdout, result.stderr

    svg, png = tmp_path / "it.svg", tmp_path / "it.png"
    assert ran("--svg", str(svg), "--png", str(png)) == (0, f"{svg}\n{png}\n", "")
    assert svg.read_text().startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ran("--svg", "it.png") == (2, "", "error: --svg must name a .svg file, got 'it.png'\n")
    missing = tmp_path / "no" / "it.svg"
    assert ran("--svg", str(missing)) == (2, "", f"error: {missing} cannot be written: No such file or directory\n")
