"""What `make docs` adds to the pages in docs/: the site's address, the pages made from the source, and links.

mkdocs calls the functions by their names: https://www.mkdocs.org/dev-guide/plugins/#events.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parents[2]
sys.path.append(str(PROJECT))

from scripts.site import settings  # noqa: E402  # mkdocs reads this file from its path

# A file outside docs/ that pages link to, and the page of the site that shows it.
_SHOWN_ELSEWHERE = {
    "CHANGELOG.md": "reference/changelog.md",
    "README.md": "index.md",
    "clusters/cluster.schema.json": "reference/settings.md",
}
_LINK_OUT = re.compile(r"\]\((?:\.\./)+(?P<file>[^)#]+)(?P<rest>[^)]*)\)")
_EXAMPLES = "reference/examples.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the site's addresses from the project's metadata.

    Args:
        config: mkdocs' configuration.
    """
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    addresses = project.get("urls", {})
    config["site_url"] = addresses.get("Documentation") or config["site_url"]
    config["repo_url"] = addresses.get("Repository") or config["repo_url"]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the source.

    Args:
        files: The site's files.
        config: mkdocs' configuration.
    """
    for path, text in _pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Lead links that leave docs/ to the page of the site that shows the file.

    Args:
        markdown: The page's text.
        page: The page.
    """
    up = "../" * page.file.src_uri.count("/")

    def inside(link: re.Match[str]) -> str:
        file = Path(link["file"])
        if file.suffix == ".yaml":
            return f"]({up}{_EXAMPLES}#{file.stem})"
        shown = _SHOWN_ELSEWHERE.get(link["file"])
        return f"]({up}{shown}{link['rest']})" if shown else link[0]

    return _LINK_OUT.sub(inside, markdown)


def _pages() -> dict[str, str]:
    return {
        _EXAMPLES: _examples(),
        "reference/api.md": _api(),
        "reference/settings.md": settings.page(json.loads((PROJECT / "clusters/cluster.schema.json").read_text())),
        "reference/changelog.md": (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }


def _api() -> str:
    source = (PROJECT / "constructs/cdk_training_cluster/__init__.py").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)",$', source, re.MULTILINE)
    return "# Python API\n\n" + "\n\n".join(f"::: cdk_training_cluster.{name}" for name in names) + "\n"


def _examples() -> str:
    parts = ["# Example cluster files"]
    for file in sorted((PROJECT / "clusters").glob("*.yaml")):
        parts.append(f"## {file.stem}\n\n```yaml\n{file.read_text(encoding='utf-8')}```")
    return "\n\n".join(parts) + "\n"
