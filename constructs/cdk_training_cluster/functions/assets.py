"""Where the sources of Lambda functions lie, and how one function's become an asset."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import AssetHashType, IgnoreMode
from aws_cdk import aws_lambda as lambda_

_SHARED = ("cluster_common", "cluster_contract")
_SUFFIXES = (".json", ".py", ".whl")


@dataclass(frozen=True, kw_only=True)
class FunctionSource:
    """The source of one Lambda function: its own package and those that all functions share.

    Only `*.py`, `*.json` and `*.whl` files of these packages go into the asset, whatever else lies there. The asset's
    hash is that of their names and contents, so that it is the same from a wheel and a checkout and on any machine,
    and changes for one function only when that function's code, or the shared code, changes.

    Attributes:
        root: The folder that holds the packages.
        package: The function's package; its `handler.py` has the function `handler`.
    """

    root: Path
    package: str

    def __post_init__(self) -> None:
        """Check that the packages are there."""
        for name in (self.package, *_SHARED):
            if not (self.root / name / "__init__.py").is_file():
                raise ValueError(f"package must be a folder with an __init__.py in {self.root}, got {name!r}")

    @property
    def handler(self) -> str:
        """The handler, as Lambda takes it."""
        return f"{self.package}.handler.handler"

    @property
    def files(self) -> tuple[str, ...]:
        """The files that go into the asset, relative to the root, sorted."""
        found = (
            path.relative_to(self.root).as_posix()
            for name in (self.package, *_SHARED)
            for path in (self.root / name).rglob("*")
            if path.suffix in _SUFFIXES
        )
        return tuple(sorted(file for file in found if "__pycache__" not in file.split("/")))

    @property
    def digest(self) -> str:
        """The SHA-256 of the files' names and contents, whatever their times, modes and line ends."""
        digest = hashlib.sha256()
        for file in self.files:
            content = (self.root / file).read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{file}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()

    def code(self) -> lambda_.Code:
        """Return the asset. CDK copies it from where it lies; nothing is written beside the sources."""
        return lambda_.Code.from_asset(
            str(self.root),
            exclude=_allow_only(self.files),
            ignore_mode=IgnoreMode.GIT,
            asset_hash=self.digest,
            asset_hash_type=AssetHashType.CUSTOM,
        )


def function_source(package: str) -> FunctionSource:
    """Find the source of a function: beside the library in a wheel, in `lambdas/` in a checkout.

    Args:
        package: The function's package, such as `cluster_power`.

    Raises:
        ValueError: There is no such package.
    """
    library = Path(__file__).resolve().parent.parent
    in_wheel = library / "_lambdas"
    return FunctionSource(root=in_wheel if in_wheel.is_dir() else library.parent.parent / "lambdas", package=package)


def _allow_only(files: tuple[str, ...]) -> list[str]:
    """Return patterns, in Git's language, that ignore everything but some files.

    Git does not look into a folder that is ignored, so that each folder on the way is allowed by name.
    """
    folders = {parent.as_posix() for file in files for parent in Path(file).parents} - {"."}
    return ["*", *(f"!/{folder}/" for folder in sorted(folders)), *(f"!/{file}" for file in files)]
