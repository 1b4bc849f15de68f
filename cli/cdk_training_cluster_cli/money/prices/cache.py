"""Keeps what AWS said of prices in a file of the user's, so that the next plan need not ask again."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster.prices.book import book_of, document_of
from cdk_training_cluster.prices.files import text_of


def cache_file(environment: Mapping[str, str]) -> Path | None:
    """Return the file, in the user's cache directory: https://specifications.freedesktop.org/basedir-spec/latest/.

    Args:
        environment: The process's environment.

    Returns:
        The file. None: neither `XDG_CACHE_HOME` nor the user's home directory is known.
    """
    given = environment.get("XDG_CACHE_HOME", "")
    try:
        directory = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return directory / "cdk-training-cluster" / "prices.json"


def kept_prices(file: Path | None) -> PriceBook:
    """Return the prices in the file; an empty book where there is none.

    Args:
        file: The file. None: there is no place for one.

    Raises:
        ValueError: It is no price book.
    """
    if file is None:
        return PriceBook()
    try:
        return book_of(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return PriceBook()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is no price book; delete it, and ask again with --live") from error


def keep_prices(file: Path, book: PriceBook) -> None:
    """Write prices to the file, in one step: a plan that reads meanwhile reads the old ones.

    Args:
        file: The file.
        book: The prices.

    Raises:
        OSError: It cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text_of(document_of(book)), encoding="utf-8")
    part.replace(file)
