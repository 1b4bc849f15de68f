"""The page of messages is what the source says now."""

from pathlib import Path

from scripts.list_messages import list_messages

_PROJECT = Path(__file__).resolve().parents[1]


def test_page_of_messages_is_what_make_messages_writes() -> None:
    page = (_PROJECT / "docs/messages.md").read_text(encoding="utf-8")
    assert page == list_messages(_PROJECT), "run: make messages"
