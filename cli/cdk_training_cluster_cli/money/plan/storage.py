"""What is billed for what is stored and moved."""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial

from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.money.plan.assumptions import HOURS_OF_A_MONTH, Assumptions
from cdk_training_cluster_cli.money.plan.lines import Line, units_line
from cdk_training_cluster_cli.money.plan.shape import ClusterShape


def storage_lines(shape: ClusterShape, book: PriceBook, assumptions: Assumptions) -> Iterator[Line]:
    """Yield what is billed for what is stored.

    Args:
        shape: The cluster.
        book: The prices.
        assumptions: What the plan assumes.
    """
    files, line = shape.file_system, partial(units_line, region=shape.region, book=book)
    if files is not None:
        units = files.units_of_a_month() or {}
        yield line(
            "storage.file-system",
            f"FSx for Lustre, {files.describe()}",
            an_hour={name: count / HOURS_OF_A_MONTH for name, count in units.items()},
        )
        if not files.capacity_gib:
            yield _not_given(
                "storage.file-system-data",
                "data in the file system, billed by use",
                "its size",
                "--cost storage.file-system-data=USD",
            )
    elif shape.existing_file_system is not None:
        yield _not_given(
            "storage.file-system",
            f"FSx for Lustre {shape.existing_file_system}, which exists already",
            "its size",
            "--cost storage.file-system=USD",
        )
    gib = sum(group.count * group.root_volume_gib for group in shape.groups)
    billed = sum((group.count * group.root_volume_gib * group.share for group in shape.groups), Decimal(0))
    yield line(
        "storage.root-volumes",
        f"gp3, {gib:,} GiB on running nodes",
        an_hour={"ebs-gp3": billed / HOURS_OF_A_MONTH},
    )
    if assumptions.dataset_gb is not None:
        yield line(
            "storage.dataset",
            f"training data in S3, {assumptions.dataset_gb:,f} GB",
            an_hour={"s3-standard": assumptions.dataset_gb / HOURS_OF_A_MONTH},
        )
    elif shape.has_file_system:
        yield _not_given("storage.dataset", "training data in S3", "its size", "--dataset-gb")
    if assumptions.checkpoints:
        yield line(
            "storage.checkpoints",
            f"{assumptions.checkpoints} checkpoints of {assumptions.checkpoint_gb:f} GB in S3",
            once={"s3-standard": assumptions.checkpoints * assumptions.checkpoint_gb},
            note=", kept for a month",
        )


def transfer_lines(shape: ClusterShape, book: PriceBook, assumptions: Assumptions) -> Iterator[Line]:
    """Yield what is billed for what is moved.

    Args:
        shape: The cluster.
        book: The prices.
        assumptions: What the plan assumes.
    """
    line = partial(units_line, region=shape.region, book=book)
    if shape.nat_gateways:
        count = Decimal(shape.nat_gateways)
        yield line(
            "transfer.nat-gateway",
            "NAT gateway with its address",
            an_hour={"nat-gateway": count, "public-ipv4": count},
        )
        if assumptions.nat_gb is None:
            yield _not_given("transfer.nat-data", "data through the NAT gateway", "how much", "--nat-gb")
        else:
            yield line(
                "transfer.nat-data",
                f"{assumptions.nat_gb:,f} GB through the NAT gateway",
                once={"nat-gateway-data": assumptions.nat_gb},
            )
    if shape.has_file_system:
        yield Line(
            key="transfer.s3-to-file-system",
            what="S3 to the file system",
            per_hour=Decimal(0),
            basis="free within a region; requests are not counted",
        )


def _not_given(key: str, what: str, missing: str, option: str) -> Line:
    return Line(key=key, what=what, per_hour=None, basis=f"{missing} is not given: {option}")
