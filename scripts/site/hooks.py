"""What `make docs` adds to the pages in docs/: the site's address, the pages made from the source, and links.

mkdocs calls the functions by their names: https://www.mkdocs.org/dev-guide/plugins/#events.
"""

import itertools
import json
import posixpath
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parents[2]
sys.path.append(str(PROJECT))

from scripts.site import made, messages, settings, tutorial  # noqa: E402

import cdk_training_cluster  # noqa: E402  # mkdocs reads this file from its path

_EXAMPLES = "reference/examples.md"
_MERMAID = "scripts/site/node_modules/mermaid/dist/mermaid.min.js"
_SETTINGS = "reference/settings.md"
# Files at the project's top, and the pages of the site that show them.
_SHOWN = {
    "README.md": "index.md",
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "reference/contributing.md",
}
_tutorial: subprocess.Popen[bytes]
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_COLUMNS = 3
_LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the site's addresses from the project's metadata.

    Args:
        config: mkdocs' configuration.
    """
    global _tutorial  # noqa: PLW0603  # mkdocs calls functions only
    # In a process of its own: jsii, which the diagram needs meanwhile, bears no second thread.
    _tutorial = subprocess.Popen([sys.executable, "-m", "scripts.site.tutorial"], cwd=PROJECT)
    addresses = tomllib.loads(_file("pyproject.toml"))["project"].get("urls", {})
    config["site_url"] = addresses.get("Documentation") or config["site_url"]
    config["repo_url"] = addresses.get("Repository") or config["repo_url"]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the source.

    Args:
        files: The site's files.
        config: mkdocs' configuration.
    """
    pages = {page: _file(name) for name, page in _SHOWN.items()}
    pages |= {
        _EXAMPLES: _examples(),
        _SETTINGS: settings.page(json.loads(_file("clusters/cluster.schema.json"))),
        "reference/messages.md": messages.page(PROJECT),
        "reference/api.md": "# Python API\n\n"
        + "\n\n".join(f"::: cdk_training_cluster.{name}" for name in cdk_training_cluster.__all__),
        "reference/license.md": f"# Licence\n\n```text\n{_file('LICENSE')}```\n",
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, made.MERMAID, content=_file(_MERMAID)))
    # Last, so that its commands run while the other pages are made.
    (page,) = (file for file in files if file.src_uri == tutorial.PAGE.name)
    files.remove(page)
    files.append(page)
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Put in what is made from the source, and lead each link to the page of the site that shows its file.

    Args:
        markdown: The page's text.
        page: The page.
    """
    here = page.file.src_uri
    if here == tutorial.PAGE.name:
        if _tutorial.wait():
            raise tutorial.TutorialError("its message is above")
        markdown = tutorial.with_outputs(markdown, tutorial.outputs())
    folder = "" if here in _SHOWN.values() else posixpath.dirname(f"docs/{here}")

    def lead(link: re.Match[str]) -> str:
        shown = _shown(posixpath.normpath(posixpath.join(folder, link["target"])))
        target, _, anchor = shown.partition("#")
        relative = posixpath.relpath(target, posixpath.dirname(here) or ".")
        return f"]({relative}{link['anchor'] or (anchor and '#' + anchor)})"

    return _LINK.sub(lead, made.expanded(markdown))


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Add Mermaid to pages with diagrams, and the column's name, which phones show, to cells of tables.

    Args:
        html: The page's content.
        page: The page.
    """
    return made.with_mermaid(_TABLE.sub(_named, html), page.url)


def _named(table: re.Match[str]) -> str:
    names = [re.sub(r"<[^>]+>", "", name) for name in re.findall(r"<th\b[^>]*>(.*?)</th>", table[0], re.DOTALL)]
    if len(names) < _COLUMNS:
        return table[0]
    column = itertools.cycle(names)
    return re.sub(r"<td\b", lambda cell: f'{cell[0]} data-column="{next(column)}"', table[0])


def _shown(file: str) -> str:
    """Return the page that shows a file of the project, as a path in docs/."""
    path = Path(file)
    if path.parent.name == "examples":
        return f"{_EXAMPLES}#{path.stem}"
    if path.parent.name == "clusters":
        return f"{_EXAMPLES}#{path.stem}" if path.suffix == ".yaml" else _SETTINGS
    return _SHOWN.get(file, "reference/license.md" if file == "LICENSE" else file.removeprefix("docs/"))


def _examples() -> str:
    parts = ["# Examples: cluster files, and an app"]
    kinds = {"yaml": (PROJECT / "clusters").glob("*.yaml"), "python": (PROJECT / "examples").glob("*.py")}
    for language, files in kinds.items():
        for file in sorted(files):
            parts.append(f"## {file.stem}\n\n```{language}\n{file.read_text(encoding='utf-8')}```")
    return "\n\n".join(parts) + "\n"


def _file(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")
