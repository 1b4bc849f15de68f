"""README and the site's pages: examples run as they are written, and commands, links and figures are right."""

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct
from typer.main import get_group

import cdk_training_cluster
from cdk_training_cluster import ClusterNetwork, NodeGroup, TrainingCluster
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor, agent_configuration
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.building import built_stacks
from cluster_contract.health_settings import HealthMetric
from cluster_contract.idle import IdleMetric
from cluster_contract.metrics import NODE_METRICS, node_namespace
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings, PowerMetric
from cluster_power.commands import parse_command
from documented_commands import Shown, shown_commands
from documents import PAGES, blocks, blocks_of, commands, parse_aws, parse_own, text_of
from examples import PROJECT, templates
from power_scene import caller_of

# What a fragment of a cluster file stands in.
_FILE = """\
name: docs
availability_zone: us-east-1b
node_groups:
  - {name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}
"""
_FILE_SYSTEM = "file_system: {storage_capacity_gib: 4800}\n"
_SECTIONS = ("Example", "Resources", "Cost", "Limits")
READMES = [
    path for path in sorted(PROJECT.glob("*/README.md")) if path.parent.name not in {"benchmarks", "node_modules"}
]

_CONSTRUCT_PAGES = [
    page
    for page in PAGES
    if re.match(r"docs/(constructs|orchestrators|resilience)/", page) and "index.md" not in page
]
_OF_AWS = [
    pytest.param(words, id=" ".join(words[:3]))
    for block in blocks("console")
    for words in commands(block.text)
    if words and words[0] == "aws"
]
_TARGETS = sorted(
    {word for shown in shown_commands() for word in shown.words[1:] if shown.words[0] == "make" and word.islower()}
)
_OWN = {shown.words: shown for shown in shown_commands() if shown.words[0] == "training-cluster"}.values()
_CDK = {shown.words: shown for shown in shown_commands() if shown.words[0] == "cdk"}


def _surroundings(*, with_cluster: bool) -> dict[str, Any]:
    """What the shorter examples take for granted."""
    stack = Stack(App(), "Docs", env=Environment(region="us-east-1"))
    surroundings = {
        "self": stack,
        "stack": stack,
        "vpc": ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0a1b2c3d", availability_zones=["us-east-1b"]),
        "subnet": ec2.Subnet.from_subnet_attributes(
            stack, "Subnet", subnet_id="subnet-0a1b2c3d", availability_zone="us-east-1b"
        ),
        "network": ClusterNetwork(stack, "DocsNetwork", availability_zone="us-east-1b"),
        "corpus": s3.Bucket.from_bucket_name(stack, "Corpus", "my-training-corpus"),
        "operators": iam.Role(stack, "Operators", assumed_by=iam.AccountRootPrincipal()),
        "on_call": iam.Role(stack, "OnCall", assumed_by=iam.AccountRootPrincipal()),
        "ec2": ec2,
        **{name: getattr(cdk_training_cluster, name) for name in cdk_training_cluster.__all__},
    }
    if with_cluster:
        surroundings["cluster"] = TrainingCluster(
            stack,
            "Cluster",
            availability_zone="us-east-1b",
            node_groups=[NodeGroup(name="workers", instance_types=["p5.48xlarge"], count=8)],
        )
    return surroundings


@pytest.mark.parametrize("page", sorted({block.page for block in blocks("python")}))
def test_the_python_examples_of_a_page_run(page: str) -> None:
    texts = [block.text for block in blocks("python") if block.page == page]
    names = _surroundings(with_cluster=any(text.startswith("cluster.") for text in texts))
    for text in texts:
        exec(compile(text, page, "exec"), names)  # noqa: S102  # the pages are ours


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.page)
def test_a_cluster_file_or_a_part_of_one_is_right(block: Any, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    keys = set(re.findall(r"^(\w+):", block.text, re.MULTILINE))
    before = "" if "name" in keys else _FILE + ("" if "file_system" in keys else _FILE_SYSTEM)
    file.write_text(before + block.text)
    shutil.copytree(PROJECT / "clusters/scripts", tmp_path / "scripts")
    with built_stacks(read_cluster_file(file)) as (app, _):
        assert len(app.synth().stacks) == 2


@pytest.mark.parametrize("words", _OF_AWS)
def test_a_call_of_the_aws_cli_is_one(words: list[str]) -> None:
    parse_aws(words)


def test_each_target_of_make_is_one() -> None:
    assert [one for one in _TARGETS if not re.search(rf"^{one}:", text_of("Makefile"), re.MULTILINE)] == []
    assert len(_TARGETS) > 20


@pytest.mark.parametrize("shown", _OWN, ids=lambda shown: shown.text)
def test_a_command_is_one(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have all their arguments run in test_documented_commands.py."""
    monkeypatch.chdir(PROJECT)
    if shown.is_only_named:
        assert shown.words[1].startswith("-") or shown.words[1] in get_group(training_cluster).commands
    else:
        parse_own(list(shown.words))


def test_the_cdk_cli_is_given_cluster_files_that_there_are() -> None:
    files = {word.partition("=")[2] for words in _CDK for word in words if word.startswith("cluster=")}
    assert [file for file in files if not (PROJECT / file).is_file()] == []
    assert {words[1] for words in _CDK} <= {"bootstrap", "deploy", "destroy", "import", "synth"}


@pytest.mark.parametrize("payload", re.findall(r'\{"action".*?\}', text_of("docs/constructs/power.md")))
def test_the_power_function_takes_the_payloads(payload: str) -> None:
    settings = PowerFunctionSettings(
        cluster="llama", groups={"workers": PowerGroupSettings(count=8)}, launch_grace=timedelta(minutes=10)
    )
    assert parse_command(json.loads(payload), settings, caller_of(json.loads(payload))).node_groups == ("workers",)


def test_the_readme_is_short_and_begins_with_a_short_example() -> None:
    assert len(text_of("README.md").encode()) <= 9_000
    first = next(block.text for block in blocks("python") if block.page == "README.md")
    assert "TrainingCluster(" in first
    assert len([line for line in first.splitlines() if line.strip()]) <= 15


def _links() -> Iterator[tuple[str, str]]:
    return ((page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)))


def test_links_have_the_form_of_links() -> None:
    """That those within the site lead somewhere is checked where it is built."""
    for page, link in _links():
        if ":" in link.partition("#")[0]:
            address = urlsplit(link)
            assert (address.scheme, "." in address.netloc) == ("https", True), f"{page}: {link}"
        elif not link.startswith(("#", "../reference/")):
            assert (PROJECT / page).parent.joinpath(link.partition("#")[0]).exists(), f"{page}: {link}"


def test_each_construct_has_a_page_that_says_what_it_makes_costs_and_cannot_do() -> None:
    linked = set(re.findall(r"`(\w+)`", text_of("docs/constructs/index.md")))  # those with pages elsewhere
    public = [getattr(cdk_training_cluster, name) for name in cdk_training_cluster.__all__]
    for construct in (each for each in public if inspect.isclass(each) and issubclass(each, Construct)):
        if construct.__name__ in linked:
            continue
        (page,) = (text for text in map(text_of, _CONSTRUCT_PAGES) if _titles(text, construct.__name__))
        headings = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
        assert [section for section in _SECTIONS if section not in headings] == [], construct.__name__


def _titles(page: str, name: str) -> bool:
    return bool(re.search(rf"\b{name}\b", page.partition("\n")[0]))


@pytest.mark.parametrize(
    "path", re.findall(r"^\|[^|]*\| `([\w.]+)` \|", text_of("docs/cookbook/parallelcluster.md"), re.MULTILINE)
)
def test_what_stands_for_a_setting_of_parallelcluster_is_in_the_schema(path: str) -> None:
    schema = json.loads(text_of("clusters/cluster.schema.json"))
    here = schema
    for key in path.split("."):
        here = next(found["properties"][key] for found in _objects(here, schema) if key in found["properties"])


def test_the_file_of_parallelcluster_has_each_setting_that_stands_beside_one_of_the_cluster_file() -> None:
    """Its whole form was compared with ParallelCluster's own schema, which is no dependency."""
    page = "docs/cookbook/parallelcluster.md"
    (theirs,) = (yaml.safe_load(block.text) for block in blocks_of(page, "yml"))
    rows = text_of(page).partition("## Row by row")[2].partition("## ")[0]
    paths = re.findall(r"^\| `([\w/]+)` \|", rows, re.MULTILINE)
    assert len(paths) == rows.count("\n| `")
    assert [path for path in paths if not _values_at(theirs, path.split("/"))] == []


def _values_at(here: Any, keys: list[str]) -> list[Any]:
    """Return what a file has at a path, in each entry of the lists on its way."""
    if isinstance(here, list):
        return [value for entry in here for value in _values_at(entry, keys)]
    if not keys:
        return [here]
    return _values_at(here[keys[0]], keys[1:]) if keys[0] in here else []


def _objects(here: Any, schema: Any) -> Iterator[Any]:
    """Yield the objects that a part of the schema may be."""
    if "$ref" in here:
        yield from _objects(schema["$defs"][here["$ref"].rsplit("/", 1)[-1]], schema)
    if "properties" in here:
        yield here
    for inner in [*here.get("anyOf", ()), *here.get("oneOf", ()), *([here["items"]] if "items" in here else ())]:
        yield from _objects(inner, schema)


@pytest.mark.parametrize("page", ["docs/architecture.md", *(f"{path.parent.name}/README.md" for path in READMES)])
def test_files_that_a_page_about_the_source_names_exist(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:constructs|cluster_file|stacks|lambdas|manifests|cli|tests)/[\w/.]+)`", text)
    assert [name for name in named if not (PROJECT / name).exists()] == []


def test_the_readme_of_each_package_is_short() -> None:
    assert {path.parent.name: 0 for path in READMES if len(path.read_text().splitlines()) > 60} == {}
    assert {path.parent.name for path in READMES} >= {
        "cli",
        "cluster_file",
        "constructs",
        "job",
        "lambdas",
        "local_aws",
        "manifests",
        "rehearsal",
        "stacks",
    }


def test_every_page_is_in_the_navigation() -> None:
    navigation = text_of("mkdocs.yml")
    assert [page for page in PAGES[1:] if page.removeprefix("docs/") not in navigation] == []


def test_what_watching_costs_counts_every_series_and_alarm(assembly_of: Callable[[Path], Path]) -> None:
    # Without data sets and checkpoints, whose functions the sentences below the table add.
    page = text_of("docs/watching.md")
    made = templates(assembly_of(PROJECT / "clusters/dev-box.yaml"))["dev-box-cluster"]["Resources"].values()
    alarms = [each["Properties"] for each in made if each["Type"] == "AWS::CloudWatch::Alarm"]
    metrics = sum(sum("MetricStat" in one for one in alarm.get("Metrics", ())) or 1 for alarm in alarms)
    assert f"| {metrics} metrics of {len(alarms)} alarms at $0.10 | {metrics / 10:.2f} |" in page
    by_group = 4  # missing, surplus, running and wanted nodes
    ends = 1  # of a group in a reservation
    series = len(PowerMetric) - ends + by_group + len(IdleMetric) + len(HealthMetric)
    assert f"| {series} series at $0.30 (the first 10,000) | {series * 0.3:.2f} |" in page
    agent = agent_configuration(
        AcceleratorVendor.NVIDIA, namespace=node_namespace("llama"), cluster="llama", node_group="workers"
    )
    assert agent is not None
    collected = agent["metrics"]["metrics_collected"]
    shared = 2 * len(collected["nvidia_gpu"]["measurement"])
    of_an_instance = len([each for each in NODE_METRICS.series if NODE_METRICS.instance_id_dimension in each])
    own = of_an_instance * len(collected["nvidia_gpu"]["measurement"]) + len(collected["cpu"]["measurement"])
    costs = f"{shared * 0.3:.2f}, and {own * 0.3:.2f} a node"
    assert f"| metrics of the nodes | {shared} series, and {own} a node, at $0.30 | {costs} |" in page
