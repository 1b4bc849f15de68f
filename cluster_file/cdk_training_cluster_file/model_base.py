"""What every part of a cluster file has in common."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """What every part of a cluster file has in common: no unknown keys, and nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True)
class Because:
    """Marks a setting that has no default, and says why it has none where it is left out.

    Attributes:
        reason: A clause that follows "is missing; add it, such as …:".
    """

    reason: str
