"""The command `dashboard`: where the console shows a cluster's dashboard."""

import sys
import webbrowser
from collections.abc import Callable
from urllib.parse import quote

from botocore.session import get_session

from cdk_training_cluster_cli.core.output import check_format, json_text
from cdk_training_cluster_cli.core.target import resolve

# https://docs.aws.amazon.com/general/latest/gr/signin-service.html
_CONSOLES = {
    "aws": "https://{region}.console.aws.amazon.com",
    "aws-cn": "https://{region}.console.amazonaws.cn",
    "aws-us-gov": "https://{region}.console.amazonaws-us-gov.com",
}


def run(
    cluster: str,
    *,
    opens: bool,
    region: str | None,
    profile: str | None,
    output: str,
    browse: Callable[[str], object] = webbrowser.open,
) -> None:
    """Show the address of a cluster's dashboard, and open it where a person looks at a terminal.

    Args:
        cluster: The cluster file, or the name of a deployed cluster.
        opens: Whether the browser is opened.
        region: The region. None: the file's, or that of the AWS configuration.
        profile: The profile of the AWS configuration. None: the default one.
        output: `table` or `json`.
        browse: Opens an address.

    Raises:
        ValueError: The cluster is not deployed or has no dashboard, or AWS refuses.
    """
    check_format(output, formats=("table", "json"))
    target = resolve(cluster, region=region, profile=profile, asker="dashboard")
    name = target.description.dashboard
    if not name:
        raise ValueError(
            f"the cluster {target.name!r} has no dashboard: remove `dashboard: false` from its file, and deploy"
        )
    url = console_url(name, target.region)
    sys.stdout.write(f"{json_text({'dashboard': name, 'url': url})}\n" if output == "json" else f"{url}\n")
    if opens and output != "json" and sys.stdout.isatty():
        browse(url)


def console_url(dashboard: str, region: str) -> str:
    """Return where the console shows a dashboard.

    Args:
        dashboard: Its name.
        region: Its region.

    Raises:
        ValueError: The address of the partition's console is not known.
    """
    partition = get_session().get_partition_for_region(region)
    if partition not in _CONSOLES:
        raise ValueError(
            f"the console of the partition {partition} is not known: open its dashboard {dashboard!r} there"
        )
    console = _CONSOLES[partition].format(region=region)
    return f"{console}/cloudwatch/home?region={region}#dashboards/dashboard/{quote(dashboard, safe='')}"
