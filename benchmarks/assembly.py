"""What a cloud assembly holds: its stacks in the order of their deployment, and in what it differs from another."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StackFile:
    """One stack of an assembly.

    Attributes:
        name: Its name in the assembly.
        artifact: What the manifest says of it.
        template: Its template.
        size: The bytes of the template as it was written.
        files: What it uploads beside its template.
    """

    name: str
    artifact: Mapping[str, Any]
    template: Mapping[str, Any]
    size: int
    files: tuple[Path, ...]


def stacks_of(assembly: Path) -> list[StackFile]:
    """Return the stacks of an assembly, each after those that it depends on.

    Args:
        assembly: What was synthesized.
    """
    manifest = json.loads((assembly / "manifest.json").read_bytes())
    waiting = {
        name: _stack(assembly, name, artifact)
        for name, artifact in sorted(manifest["artifacts"].items())
        if artifact["type"] == "aws:cloudformation:stack"
    }
    order: list[StackFile] = []
    while waiting:
        ready = [s for s in waiting.values() if not {*s.artifact.get("dependencies", ())} & {*waiting}]
        order += ready
        for stack in ready:
            del waiting[stack.name]
    return order


def differences(assembly: Path, other: Path) -> list[str]:
    """Tell, a line each, in what the templates of two assemblies differ.

    Everything is compared, but not the order in `DependsOn`: it is a set, which CDK sorts by the constructs' paths.

    Args:
        assembly: What was synthesized.
        other: What should be the same.
    """
    ours, theirs = ({s.name: _comparable(s.template) for s in stacks_of(each)} for each in (assembly, other))
    return list(_differences(ours, theirs, ""))


def _stack(assembly: Path, name: str, artifact: Mapping[str, Any]) -> StackFile:
    template = artifact["properties"]["templateFile"]
    text = (assembly / template).read_bytes()
    manifest = assembly / f"{name}.assets.json"
    assets = json.loads(manifest.read_bytes())["files"] if manifest.exists() else {}
    paths = sorted(asset["source"]["path"] for asset in assets.values())
    return StackFile(
        name=name,
        artifact=artifact,
        template=json.loads(text),
        size=len(text),
        files=tuple(assembly / path for path in paths if path != template),
    )


def _comparable(template: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(dict(template))
    for resource in result["Resources"].values():
        if isinstance(resource.get("DependsOn"), list):
            resource["DependsOn"].sort()
    return result


def _differences(one: Any, other: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield f"{path}/{key} is in one of them only"
            else:
                yield from _differences(one[key], other[key], f"{path}/{key}")
    elif json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):  # 1 is not true
        yield f"{path}: {json.dumps(one)} and {json.dumps(other)}"
