"""`training-cluster init`: from what the user needs to a cluster file that passes `check`."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from cdk_training_cluster import instance_type_info
from cdk_training_cluster.guardrails import place_problems
from cdk_training_cluster.nodes.legality import LEGALITY
from cdk_training_cluster.prices import PriceBook, committed_prices
from cdk_training_cluster_cli.core.output import Document, Table, show, usd
from cdk_training_cluster_cli.core.sizes import gib_of
from cdk_training_cluster_cli.money.prices.cache import cache_file, kept_prices
from cdk_training_cluster_cli.prepare.init.asking import Ask, Questions, formed, positive, whole
from cdk_training_cluster_cli.prepare.init.needs import image_for, prices_for
from cdk_training_cluster_cli.prepare.init.offers import Offer, Way, accelerators, offer, offers, ways_to_buy
from cdk_training_cluster_cli.prepare.init.writing import Answers, cluster_text, file_system_for
from cdk_training_cluster_file import ClusterFile, fields, read_cluster_file
from cdk_training_cluster_file.orchestrators.choice import KINDS, NONE, ORCHESTRATORS
from cdk_training_cluster_file.problems import ClusterFileError
from cdk_training_cluster_file.regions import known_region
from cdk_training_cluster_stacks.building import built_stacks

_SHOWN = 8
_HOURS_OF_A_MONTH = 730
_REGION = "us-east-1"
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, kw_only=True)
class Given:
    """What options gave, as text. None: nothing.

    Attributes:
        name: The cluster's name.
        accelerators: How many accelerators the job takes together.
        memory: The memory that each needs, in GiB.
        instance_type: The instance type.
        nodes: How many nodes there are.
        hours: How long the run is.
        region: The region.
        zone: The Availability Zone.
        buy: How nodes are bought.
        capacity_id: The id of a reservation or block.
        orchestrator: What runs jobs.
        dataset: How much training data there is.
        bucket: The bucket that has it.
        budget: What may be spent in a month, in USD.
        image: The id of the image that nodes start from.
        prices: What the budget states of prices: `NAME=USD`.
        emails: Who hears of trouble.
    """

    name: str | None = None
    accelerators: str | None = None
    memory: str | None = None
    instance_type: str | None = None
    nodes: str | None = None
    hours: str | None = None
    region: str | None = None
    zone: str | None = None
    buy: str | None = None
    capacity_id: str | None = None
    orchestrator: str | None = None
    dataset: str | None = None
    bucket: str | None = None
    budget: str | None = None
    image: str | None = None
    prices: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Zones:
    """The zones that offer a type, which `--live` asks for.

    Attributes:
        profile: The profile of the AWS configuration. None: the default one.
        live: Whether to ask.
    """

    profile: str | None
    live: bool

    def of(self, instance_types: Sequence[str], region: str) -> Mapping[str, Sequence[str]]:
        """Return the zones of a region that offer each type, sorted; nothing if AWS is not asked.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html

        Args:
            instance_types: The types.
            region: The region.

        Raises:
            ValueError: There are no credentials, or AWS refuses.
        """
        if not self.live:
            return {}
        from cdk_training_cluster_cli.core.aws_errors import plain_refusals  # noqa: PLC0415 - slow
        from cdk_training_cluster_cli.core.session import aws_session  # noqa: PLC0415 - slow

        session = aws_session("init --live", self.profile)
        with plain_refusals(f"the zones of {region}"):
            pages = session.client("ec2", region_name=region).get_paginator("describe_instance_type_offerings")
            filters = [{"Name": "instance-type", "Values": list(instance_types)}]
            asked = pages.paginate(LocationType="availability-zone", Filters=filters)  # type: ignore[arg-type]
            offered = [(each["InstanceType"], each["Location"]) for each in asked.search("InstanceTypeOfferings[]")]
        return {name: sorted(zone for each, zone in offered if each == name) for name in instance_types}


def run(file: Path | None, given: Given, *, zones: Zones, force: bool = False, ask: Ask | None = None) -> None:
    """Write a cluster file, and say on standard output what it costs and what to do next.

    Args:
        file: The file. Default: - the cluster's name with .yaml, in this directory
        given: What options gave.
        zones: The zones that offer a type.
        force: Whether to replace a file that exists.
        ask: Asks on a terminal. Default: - there is no terminal

    Raises:
        ValueError: Something given is wrong or missing, or the file exists.
    """
    if file is not None:
        _check_place(file, force=force)
    book = committed_prices().updated(kept_prices(cache_file(os.environ)))
    questions = Questions(ask=ask, tell=lambda sentence: sys.stderr.write(f"error: {sentence}\n"))
    wanted, way = _wanted(questions, given, zones, book, stem="training" if file is None else file.stem)
    place = file or Path(f"{wanted.name}.yaml")
    _check_place(place, force=force)
    text = cluster_text(wanted)
    _check(text)
    place.write_text(text, encoding="utf-8")
    price = "unknown: SageMaker has prices of its own" if KINDS[wanted.orchestrator].traits.is_hyperpod else way.price
    files = file_system_for(wanted)
    month = "unknown" if files is None or files.usd_a_month is None else f"${usd(files.usd_a_month)} a month"
    stored = "" if files is None else f"File system: {files.name}, {files.capacity_gib:,} GiB; price {month}\n"
    sys.stdout.write(
        f"{place}: {wanted.count} x {wanted.instance_type} in {wanted.zone}; price {price}\n{stored}"
        f"Next:\n  training-cluster plan {place}\n  training-cluster preflight {place}\n"
        f"  training-cluster deploy {place}\n"
    )


def _check_place(file: Path, *, force: bool) -> None:
    if file.suffix not in (".yaml", ".yml"):
        raise ValueError(f"the cluster file's name must end in .yaml, got {str(file)!r}")
    if not file.parent.is_dir():
        raise ValueError(f"there is no directory {file.parent}: make it first")
    if file.exists() and not force:
        raise ValueError(f"{file} exists: give another name, or --force to replace it")


def _check(text: str) -> None:
    """Refuse a file that `check` would refuse, before it is written.

    Raises:
        ValueError: Every reason, a line each.
    """
    with built_stacks(_read(text)):
        pass


def _read(text: str) -> ClusterFile:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "cluster.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            return read_cluster_file(file)
        except ClusterFileError as error:
            reasons = [f"{each.path}: {each.message}" if each.path else each.message for each in error.problems]
            raise ValueError("\n".join(reasons)) from None


def _wanted(questions: Questions, given: Given, zones: Zones, book: PriceBook, *, stem: str) -> tuple[Answers, Way]:
    region = _region(given)
    chosen = _type(questions, given, zones, region, book)
    hours = questions.answer("--hours", given.hours, "For how many hours does it train?", positive, default="336")
    zone = _zone(questions, given, region, zones.of([chosen.info.name], region).get(chosen.info.name))
    question = f"What runs jobs? ({_WORDS})"
    orchestrator = questions.answer("--orchestrator", given.orchestrator, question, _orchestrator, default=NONE)
    image = image_for(questions, given.image, chosen.info, orchestrator)
    sold = ways_to_buy(chosen, hours, region, book)
    way, capacity_id = _way(questions, given, orchestrator, sold, hours)
    dataset = questions.answer(
        "--dataset", given.dataset, "How much training data, such as 4TiB? (empty: none)", _size, default=""
    )
    bucket = None
    if dataset is not None or given.bucket is not None:
        text = "Which bucket has it? (empty: a new one)"
        bucket = questions.answer("--bucket", given.bucket, text, _optional_bucket, default="")
    budget = questions.answer("--budget", given.budget, _budget_question(chosen), _budget_in(region), default="")
    emails = ",".join(given.emails) or None
    addresses = questions.answer(
        "--email",
        emails,
        "Which e-mail addresses receive alarms, separated by commas? (empty: none yet)",
        _emails,
        default="",
    )
    option = "--name" if given.name else "--name, which is by default the name of the file,"
    name = questions.answer(
        option, given.name, "What is the cluster called?", formed(fields.ClusterName), default=stem
    )
    wanted = Answers(
        name=name,
        zone=zone,
        region=region,
        instance_type=chosen.info.name,
        count=chosen.nodes,
        buy=way.name,
        capacity_id=capacity_id,
        orchestrator=orchestrator,
        image=image,
        dataset_gib=1 if dataset is None and bucket is not None else dataset,
        bucket=bucket,
        emails=addresses,
    )
    if budget is None:
        if given.prices:
            raise ValueError("--price goes with --budget, which uses it; give that too, or leave --price out")
        return wanted, way
    prices = prices_for(questions, given.prices, _read(cluster_text(wanted)))
    return replace(wanted, budget_usd=budget, prices=prices), way


def _region(given: Given) -> str:
    zone = None if given.zone is None else formed(fields.AvailabilityZone)("--availability-zone", given.zone)
    named = given.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if zone is None:
        return known_region("--region", formed(fields.RegionName)("--region", named or _REGION))
    region = known_region("--availability-zone", fields.region_of(zone))
    if given.region not in (None, region):
        raise ValueError(f"--availability-zone {zone} is in {region}, and --region is {given.region}")
    return region


def _type(questions: Questions, given: Given, zones: Zones, region: str, book: PriceBook) -> Offer:
    """Choose type and count: those that are given, or the cheapest that meet the need."""
    if given.instance_type is not None:
        info = instance_type_info(given.instance_type)
        each, _ = accelerators(info)
        count = None if given.accelerators is None else whole("--accelerators", given.accelerators)
        default = "1" if count is None or not each else str(-(-count // each))
        nodes = questions.answer("--nodes", given.nodes, "How many nodes?", whole, default=default)
        return offer(info, nodes, region, book)
    count = questions.answer(
        "--accelerators", given.accelerators, "How many accelerators does the job take, such as 8?", whole
    )
    memory = questions.answer(
        "--memory", given.memory, "How much memory must each have, in GiB?", positive, default="24"
    )
    found = offers(count, float(memory), region, book)[:_SHOWN]
    if not found:
        raise ValueError(f"no instance type with a public image has accelerators of {memory} GiB: need less --memory")
    if questions.ask is not None:
        offered = zones.of([each.info.name for each in found], region)
        show("table", Document(tables=(_types(found, region, offered),), notes=()), {})
    names = {str(position): each for position, each in enumerate(found, 1)}
    names |= {each.info.name: each for each in found}
    chosen = questions.answer(
        "--instance-type", None, "Which type?", lambda _, text: _one_of("--instance-type", text, names), default="1"
    )
    nodes = questions.answer("--nodes", given.nodes, "How many nodes?", whole, default=str(chosen.nodes))
    return offer(chosen.info, nodes, region, book)


def _types(found: Sequence[Offer], region: str, offered: Mapping[str, Sequence[str]]) -> Table:
    rows = []
    for position, each in enumerate(found, 1):
        count, memory = accelerators(each.info)
        known = region in each.regions
        where = f"{region} +{len(each.regions) - 1}" if known else f"not known in {region}"
        where = ", ".join(offered.get(each.info.name, (where,))) or f"no zone of {region}"
        accelerator = f"{count} x {each.info.accelerators[0].name}, {memory:.0f} GiB"
        rows.append((str(position), each.info.name, accelerator, str(each.nodes), usd(each.usd), where))
    return Table(
        title="What meets that, by its On-Demand price",
        headings=("", "Type", "Accelerators", "Nodes", "USD an hour", "Offered in"),
        rows=tuple(rows),
        numbers=(3, 4),
    )


def _zone(questions: Questions, given: Given, region: str, offered: Sequence[str] | None) -> str:
    if offered is not None and (not offered or given.zone not in (None, *offered)):
        zones = " or ".join(offered) or "another region's: none of this has the type"
        raise ValueError(f"--availability-zone must be {zones}, got {given.zone or region}")
    if given.zone is not None:
        return given.zone
    told = f"these offer it: {', '.join(offered)}" if offered else "preflight says whether it has the type"
    default = next(iter(offered or ()), f"{region}a")
    form = formed(fields.AvailabilityZone)
    zone = questions.answer("--availability-zone", None, f"Which zone? ({told})", form, default=default)
    if fields.region_of(zone) != region:
        raise ValueError(f"--availability-zone must be in {region}, got {zone}: give --region for another")
    return zone


def _way(
    questions: Questions, given: Given, orchestrator: str, sold: Sequence[Way], hours: Decimal
) -> tuple[Way, str | None]:
    ways = [each for each in sold if not _refusal(orchestrator, each.name)]
    names = {str(position): each for position, each in enumerate(ways, 1)} | {each.name: each for each in ways}

    def read(option: str, text: str) -> Way:
        try:
            return _one_of(option, text, names)
        except ValueError as error:
            reason = _refusal(orchestrator, text.strip())
            raise ValueError(f"{error}: {reason}" if reason else str(error)) from None

    if questions.ask is not None and given.buy is None:
        show("table", Document(tables=(_ways(ways, hours),), notes=()), {})
    way = questions.answer("--buy", given.buy, "How are nodes bought?", read, default="1")
    if not way.takes_id:
        if given.capacity_id is not None:
            raise ValueError(f"--capacity-id goes with from_reservation and capacity_block, got --buy {way.name}")
        return way, None
    return way, questions.answer(
        "--capacity-id", given.capacity_id, "Which one? Its id begins with cr-", formed(fields.CapacityReservationId)
    )


def _ways(ways: Sequence[Way], hours: Decimal) -> Table:
    rows = [(str(position), each.name, each.price_of_run, each.told) for position, each in enumerate(ways, 1)]
    headings = ("", "Bought", f"USD in {hours:,f} hours", "What is billed")
    return Table(title="Ways to buy", headings=headings, rows=tuple(rows), numbers=(2,))


def _one_of(option: str, text: str, names: Mapping[str, _Choice]) -> _Choice:
    found = names.get(text.strip())
    if found is None:
        allowed = [each for each in names if not each.isdecimal()]
        words = " or ".join(filter(None, (", ".join(allowed[:-1]), allowed[-1])))
        raise ValueError(f"{option} must be {words}, got {text!r}")
    return found


_WORDS = f"{', '.join((NONE, *ORCHESTRATORS[:-1]))} or {ORCHESTRATORS[-1]}"


def _orchestrator(option: str, text: str) -> str:
    if text.strip() in KINDS:
        return text.strip()
    raise ValueError(f"{option} must be {_WORDS}, got {text!r}")


def _refusal(orchestrator: str, way: str) -> str:
    """Return why an orchestrator does not take a way to buy, and what to use. Empty: it takes it, or there is none.

    The orchestrator has its default settings. `init` writes no training plan, and HyperPod on Slurm alone.
    """
    kind = KINDS[orchestrator]
    cells = {choice.value: cell for choice, cell in LEGALITY[kind].items()}
    cell = cells.get(f"Capacity.{way}()")
    if cell is None or not cell.instead:
        return ""
    words = {
        "on_demand": "on_demand",
        "spot": "spot",
        "training_plan": "capacity: {training_plan: {arn: arn:…}} in the file",
    }
    said = f"{kind.value} {cell.instead.format(**words)}"
    return f"{said} (orchestrator: eks)" if way == "spot" and kind.traits.is_hyperpod else said


def _size(option: str, text: str) -> int | None:
    return gib_of(option, text) if text.strip() else None


def _optional_bucket(option: str, text: str) -> str | None:
    return formed(fields.BucketName)(option, text) if text.strip() else None


def _budget_question(chosen: Offer) -> str:
    month = "" if chosen.usd is None else f"; all nodes on demand cost {usd(chosen.usd * _HOURS_OF_A_MONTH)}"
    return f"What may it cost a month, in USD? (empty: no budget{month})"


def _budget_in(region: str) -> Callable[[str, str], int | None]:
    def read(option: str, text: str) -> int | None:
        if not text.strip():
            return None
        for problem in place_problems(region):
            raise ValueError(problem.replace("budget", option, 1))
        return ceil(positive(option, text))

    return read


def _emails(option: str, text: str) -> tuple[str, ...]:
    each = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    return tuple(formed(fields.Email)(option, address) for address in each)
