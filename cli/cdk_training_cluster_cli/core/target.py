"""The cluster that a command is about: given by its file, or by the name under which it is deployed."""

import signal
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.options import names_file
from cdk_training_cluster_cli.core.session import aws_session
from cluster_contract.description import ClusterDescription, description_parameter

if TYPE_CHECKING:
    import boto3

    from cdk_training_cluster_file import ClusterFile


@dataclass(frozen=True, kw_only=True)
class Target:
    """A cluster, and the credentials that ask about it.

    Attributes:
        name: The cluster's name.
        region: Its region.
        file: What its file says. None: it was given by its name.
        session: The user's credentials.
    """

    name: str
    region: str
    file: "ClusterFile | None"
    session: "boto3.Session"

    def client(self, service: str) -> Any:  # noqa: ANN401 - each service has a type of its own
        """Return a client of a service in the cluster's region.

        Args:
            service: The service, as boto3 calls it.
        """
        return self.session.client(service, region_name=self.region)  # type: ignore[call-overload]

    @cached_property
    def description(self) -> ClusterDescription:
        """What the deployment wrote down for commands: the names of its functions, topic and table.

        Raises:
            ValueError: The cluster is not deployed in the region, or by a release that wrote nothing down, or AWS
                refuses.
        """
        parameter = description_parameter(self.name)
        missing = {
            "ParameterNotFound": f"no cluster {self.name!r} is deployed in {self.region} with these credentials, or "
            f"an older release deployed it (there is no SSM parameter {parameter}): check the name, --region and "
            "--profile, or deploy it again"
        }
        with plain_refusals(f"the SSM parameter {parameter}", missing):
            text = self.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        try:
            return ClusterDescription.parse(text)
        except ValueError as error:
            raise ValueError(
                f"the SSM parameter {parameter} does not hold what a deployment writes ({error}): deploy the cluster "
                "again"
            ) from error


def resolve(text: str, *, region: str | None, profile: str | None, asker: str) -> Target:
    """Find the cluster that a user means.

    Args:
        text: A cluster file, or the name of a deployed cluster.
        region: The region. None: the file's, or that of the AWS configuration.
        profile: The profile of the AWS configuration. None: the default one.
        asker: The command.

    Raises:
        ValueError: There are no credentials, or no region is given.
        ClusterFileError: The file is wrong.
    """
    file = _read(text) if names_file(text) else None
    session = aws_session(asker, profile)
    region = region or (session.region_name if file is None else file.region)
    if not region:
        raise ValueError(f"the region of the cluster {text!r} is not known: give it with --region, or set AWS_REGION")
    return Target(name=text if file is None else file.name, region=region, file=file, session=session)


def _read(file: str) -> "ClusterFile":
    # A file is checked by the constructs, for which Node.js starts: a name needs neither. Node.js takes over that
    # Ctrl-C is ignored, and would otherwise write where it was interrupted before the command ends.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        from cdk_training_cluster_file import read_cluster_file  # noqa: PLC0415
    finally:
        signal.signal(signal.SIGINT, before)
    return read_cluster_file(Path(file))
