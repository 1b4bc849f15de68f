"""The site's page of messages lists what the source and the kept templates say."""

from pathlib import Path

import pytest
from scripts.site import messages

_PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    parts = messages.page(_PROJECT).split("\n## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("Alarms", "| HealthSilence | {cluster}: the health function has not succeeded for 15 minutes"),
        ("Synthesis: what the constructs refuse or warn of", "write acknowledge: {{rule}: &lt;why>}"),
        ("Cluster files", '{address}" is listed twice; leave one of them'),
        ("Functions: messages, log entries and answers", "the cluster's health policy only reports"),
        ("Jobs: `cluster-run` and `cluster_job`", "is being trained by"),
    ],
)
def test_the_page_lists_sentences_of_every_part(sections: dict[str, str], section: str, sentence: str) -> None:
    assert sentence in sections[section]


def test_the_page_has_no_sentences_of_programs(sections: dict[str, str]) -> None:
    assert "AWS::" not in sections["Alarms"]
    assert "\n- arn:" not in "".join(sections.values())
