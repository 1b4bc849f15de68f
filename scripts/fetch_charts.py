"""Fetches the charts that the Kubernetes folder installs into build/charts, for `make test-kubernetes` to render."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import helm_python

from cdk_training_cluster_manifests.kubernetes.charts import Chart, all_charts

CHARTS = Path("build/charts")


def _fetch(chart: Chart, directory: Path) -> None:
    """Put a chart where the tests look for it."""
    with TemporaryDirectory() as fetched:
        reference = f"{chart.repository}/{chart.chart}" if chart.is_oci else chart.chart
        helm_python.pull(
            reference,
            version=chart.version,
            destination=fetched,
            untar=True,
            untar_dir=fetched,
            repo_url=None if chart.is_oci else chart.repository,
        )
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(fetched) / chart.chart, directory)


def main() -> None:
    """Fetch what is not there, and say what cannot be had: its tests are skipped then."""
    for name, chart in all_charts().items():
        if not (CHARTS / name).is_dir():
            try:
                _fetch(chart, CHARTS / name)
            except (helm_python.HelmError, OSError) as error:
                print(f"{name}: {chart.repository} cannot be reached ({str(error).splitlines()[0][:100]})")


if __name__ == "__main__":
    main()
