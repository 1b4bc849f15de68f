"""The JSON Schema of a cluster file, by which editors complete and check one while it is written."""

import ast
import inspect
import json
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from cdk_training_cluster_file.model import AlertSettings, ClusterFile


class _Generator(GenerateJsonSchema):
    """Says no more than an editor shows, and as strictly as the file is read."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Describe each setting with the text below it."""
        generated = super().model_schema(schema)
        for name, text in texts_of(schema["cls"]).items():
            generated["properties"][name]["description"] = text
        return generated

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Leave out null: a setting that is not wanted is not written."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave out defaults that are nothing."""
        generated = super().default_schema(schema)
        if generated.get("default") in _NOTHING:
            generated.pop("default", None)
        return generated

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Refuse keys that are not of the form, instead of knowing nothing about them."""
        generated = super().dict_schema(schema)
        return {**generated, "additionalProperties": False} if "patternProperties" in generated else generated


_NOTHING: tuple[object, ...] = (None, [], {}, AlertSettings().model_dump(mode="json"))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a cluster file."""
    schema = _tidied(ClusterFile.model_json_schema(schema_generator=_Generator))
    return {"$schema": _Generator.schema_dialect, "title": "Training cluster", **schema}


def schema_text() -> str:
    """Return the schema as it is kept beside the examples."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def texts_of(model: type) -> dict[str, str]:
    """Return the texts below the settings of a part of the file.

    They are read here, and not by pydantic when the part is defined, since only the schema needs them: it would
    cost every synthesis more than reading the whole file.
    """
    found = {}
    for part in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        (definition,) = ast.parse(inspect.getsource(part)).body
        for setting, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else []):
            match setting, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = inspect.cleandoc(words)
    return found


def _tidied(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """Leave out the titles that pydantic makes of names, and the line ends of docstrings."""
    if isinstance(schema, list):
        return [_tidied(item) for item in schema]
    if isinstance(schema, dict):
        return {key: _tidied(item) for key, item in schema.items() if key != "title"}
    return schema.replace("\n", " ") if isinstance(schema, str) else schema
