"""What a synthesized cloud assembly holds."""

import json
from collections import Counter
from pathlib import Path


def resource_types(assembly: Path) -> dict[str, Counter[str]]:
    """Count the resources of each stack by type.

    Args:
        assembly: The directory that `cdk synth` wrote.
    """
    manifest = json.loads((assembly / "manifest.json").read_text())
    return {
        artifact["properties"].get("stackName", name): Counter(
            resource["Type"]
            for resource in json.loads((assembly / artifact["properties"]["templateFile"]).read_text())[
                "Resources"
            ].values()
        )
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
