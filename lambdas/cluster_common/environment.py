"""A function's settings: one compact JSON object in its environment."""

import json
from collections.abc import Mapping

from cluster_common.errors import InvalidSettingsError


def read_settings(environment: Mapping[str, str], name: str) -> dict[str, object]:
    """Read the JSON object that a construct wrote into an environment variable.

    Args:
        environment: The function's environment.
        name: The variable's name.

    Raises:
        InvalidSettingsError: The variable is missing or holds no JSON object.
    """
    text = environment.get(name)
    if not text:
        raise InvalidSettingsError(f"the environment variable {name} is missing")
    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidSettingsError(f"the environment variable {name} is not JSON: {error}") from None
    if not isinstance(settings, dict):
        raise InvalidSettingsError(f"the environment variable {name} must hold a JSON object, got {text}")
    return settings
