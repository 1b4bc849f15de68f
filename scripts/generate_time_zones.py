"""Write the IANA time zones of the package tzdata where the power function reads them.

Lambda does not document that its runtime has them, and what a schedule does must not depend on where it is looked at.
"""

import json
from base64 import b64encode
from importlib import resources
from importlib.metadata import version
from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "lambdas/cluster_power/time_zones.json"


def main() -> None:
    """Write a line for each time zone: its data, or the name of another that has the same."""
    data = resources.files("tzdata")
    names: dict[bytes, str] = {}
    found: dict[str, str] = {}
    for name in sorted(data.joinpath("zones").read_text().split()):
        content = data.joinpath("zoneinfo", *name.split("/")).read_bytes()
        same = names.setdefault(content, name)
        found[name] = b64encode(content).decode() if same == name else f"={same}"
    _FILE.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    print(f"{len(found)} time zones of tzdata {version('tzdata')} in {_FILE.name}")


if __name__ == "__main__":
    main()
