"""The site loads what its pages show from the site itself."""

import pytest
from scripts.site.made import with_mermaid

_DIAGRAM = '<pre class="mermaid"><code>flowchart LR</code></pre>'


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("", "assets/mermaid.min.js"),
        ("architecture/", "../assets/mermaid.min.js"),
        ("constructs/nodes/", "../../assets/mermaid.min.js"),
    ],
)
def test_a_page_with_a_diagram_loads_mermaid_from_the_site(url: str, address: str) -> None:
    assert with_mermaid(_DIAGRAM, url) == f'{_DIAGRAM}\n<script src="{address}"></script>'


def test_a_page_without_a_diagram_loads_no_mermaid() -> None:
    assert with_mermaid("<p>mermaid</p>", "constructs/") == "<p>mermaid</p>"
