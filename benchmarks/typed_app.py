"""Write the app that a user would write by hand for a cloud assembly: CDK's typed L1 classes and nothing else.

Every resource of every template becomes a `Cfn…` class with typed properties, in stacks of the same names and
environments. Construct ids are the logical ids, so that none needs an override. References between stacks go
through attributes, of which CDK makes the same exports and imports, and exports that no stack imports are asked
for. Files stay where the template says they are:
the app uploads nothing, unless it is asked to stage the same files, as an app that is to be deployed has to.

`assembly.differences` tells whether the app gives the templates back.
"""

import shutil
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk

from benchmarks.assembly import StackFile, stacks_of
from benchmarks.typed_names import (
    MAPPING,
    SEQUENCE,
    as_wanted,
    choices_of,
    identifier,
    module_of,
    snake,
    typed_class,
)
from local_aws.cloudformation.templates import dependency_order

# Made by the synthesizer in every stack.
_SYNTHESIZERS = {"BootstrapVersion", "CheckBootstrapVersion"}
# Made by CDK of a reference from another stack.
_CUSTOM = "Custom::"
_EXPORT = "ExportsOutput"

_REMOVAL_POLICIES = {
    ("Delete", "Delete"): "DESTROY",
    ("Retain", "Retain"): "RETAIN",
    ("RetainExceptOnCreate", "Retain"): "RETAIN_ON_UPDATE_OR_DELETE",
    ("Snapshot", "Snapshot"): "SNAPSHOT",
}
_DELETION_POLICIES = {
    "Delete": "DELETE",
    "Retain": "RETAIN",
    "RetainExceptOnCreate": "RETAIN_EXCEPT_ON_CREATE",
    "Snapshot": "SNAPSHOT",
}
_PSEUDO_PARAMETERS = {
    "AWS::AccountId": "ACCOUNT_ID",
    "AWS::NoValue": "NO_VALUE",
    "AWS::Partition": "PARTITION",
    "AWS::Region": "REGION",
    "AWS::StackId": "STACK_ID",
    "AWS::StackName": "STACK_NAME",
    "AWS::URLSuffix": "URL_SUFFIX",
}
# Functions whose arguments are handed on one by one.
_FUNCTIONS = {
    "Fn::Base64": "base64",
    "Fn::Cidr": "cidr",
    "Fn::FindInMap": "find_in_map",
    "Fn::GetAZs": "get_azs",
    "Fn::Join": "join",
    "Fn::Select": "select",
    "Fn::Split": "split",
    "Fn::Sub": "sub",
}
_CONDITIONS = {
    "Fn::And": "condition_and",
    "Fn::Equals": "condition_equals",
    "Fn::Not": "condition_not",
    "Fn::Or": "condition_or",
}
_KNOWN_SECTIONS = {"Description", "Parameters", "Mappings", "Conditions", "Resources", "Outputs", "Rules"}
_KNOWN_ATTRIBUTES = {
    "Type",
    "Properties",
    "DependsOn",
    "DeletionPolicy",
    "UpdateReplacePolicy",
    "UpdatePolicy",
    "CreationPolicy",
    "Metadata",
    "Condition",
}


def write(assembly: Path, directory: Path, *, files: bool = False) -> Path:
    """Write the app for a cloud assembly into a directory and return the file to run.

    The stacks are in a module of their own, which Python compiles once, as it does with any app's.

    Args:
        assembly: What was synthesized.
        directory: Where the app is written to; it is made if it is not there.
        files: Whether the app stages the files that the assembly uploads. Default: - no.

    Raises:
        NotImplementedError: A template holds something that this module cannot write.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines = [source(assembly), *(_file_lines(assembly, directory / "files") if files else ())]
    (directory / "typed_stacks.py").write_text("\n".join(lines), encoding="utf-8")
    file = directory / "app.py"
    file.write_text("from typed_stacks import app\n\napp.synth()\n", encoding="utf-8")
    return file


def source(assembly: Path) -> str:
    """Return the module that makes the stacks of a cloud assembly.

    Args:
        assembly: What was synthesized.

    Raises:
        NotImplementedError: A template holds something that this module cannot write.
    """
    stacks = stacks_of(assembly)
    exports = {
        output["Export"]["Name"]: (stack, output["Value"])
        for stack in stacks
        for name, output in stack.template.get("Outputs", {}).items()
        if name.startswith(_EXPORT)
    }
    writers = [_StackWriter(stack, exports) for stack in stacks]
    body = [line for writer in writers for line in writer.lines()]
    services = sorted({service for writer in writers for service in writer.services})
    return "\n".join(
        [
            "import aws_cdk as cdk",
            *(f"from aws_cdk import {service}" for service in services),
            "",
            "app = cdk.App()",
            *body,
            "",
        ]
    )


def _file_lines(assembly: Path, directory: Path) -> Iterator[str]:
    """Copy what an assembly uploads into a directory, and write what stages it from there."""
    yield "from aws_cdk import aws_s3_assets"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for stack in stacks_of(assembly):
        for number, file in enumerate(stack.files):
            copy = directory / file.name
            shutil.copytree(file, copy) if file.is_dir() else shutil.copyfile(file, copy)
            yield f"aws_s3_assets.Asset({identifier(stack.name)}, 'File{number}', path={str(copy)!r})"
    yield ""


class _StackWriter:
    """Writes the lines of one stack."""

    def __init__(self, stack: StackFile, exports: Mapping[str, tuple[StackFile, Any]]) -> None:
        self.services: set[str] = set()
        self._stack = stack
        self._exports = exports
        self._template = stack.template
        self._special: Mapping[str, Callable[[Any], str | None]] = {
            "Fn::GetAtt": self._attribute,
            "Fn::If": self._if,
            "Fn::ImportValue": self._import,
            "Ref": self._ref,
        }
        unknown = set(stack.template) - _KNOWN_SECTIONS
        if unknown:
            raise NotImplementedError(f"{stack.name}: no app can be written for {', '.join(sorted(unknown))}")

    def lines(self) -> Iterator[str]:
        template, variable = self._template, identifier(self._stack.name)
        properties = self._stack.artifact["properties"]
        account, region = self._stack.artifact["environment"].removeprefix("aws://").split("/")
        environment = [
            f"{key}={value!r}"
            for key, value in (("account", account), ("region", region))
            if not value.startswith("unknown-")
        ]
        yield f"{variable} = cdk.Stack("
        yield f"    app, {self._stack.name!r}, env=cdk.Environment({', '.join(environment)}),"
        yield f"    stack_name={properties.get('stackName', self._stack.name)!r},"
        yield f"    description={template.get('Description')!r}, tags={properties.get('tags')!r},"
        yield f"    termination_protection={properties.get('terminationProtection')!r},"
        yield ")"
        for name, parameter in template.get("Parameters", {}).items():
            if name not in _SYNTHESIZERS:
                yield self._construct(name, "cdk.CfnParameter", self._arguments(aws_cdk.CfnParameter, parameter))
        for name, mapping in template.get("Mappings", {}).items():
            yield self._construct(name, "cdk.CfnMapping", [f"mapping={mapping!r}"])
        for name, condition in template.get("Conditions", {}).items():
            yield self._construct(name, "cdk.CfnCondition", [f"expression={self._condition(condition)}"])
        for name in dependency_order(template, set(template["Resources"])):
            yield from self._resource(name, template["Resources"][name])
        for name, output in template.get("Outputs", {}).items():
            if not name.startswith(_EXPORT):
                yield self._construct(name, "cdk.CfnOutput", list(self._output(output)))
            else:  # also where no other stack imports it
                yield f"{variable}.export_value({self._value(output['Value'], str)})"

    def _construct(self, name: str, kind: str, arguments: Sequence[str]) -> str:
        stack = identifier(self._stack.name)
        return f"{self._variable(name)} = {kind}({', '.join([stack, repr(name), *arguments])})"

    def _variable(self, name: str, stack: str | None = None) -> str:
        return f"{identifier(stack or self._stack.name)}_{name}"

    def _resource(self, name: str, definition: Mapping[str, Any]) -> Iterator[str]:
        unknown = set(definition) - _KNOWN_ATTRIBUTES
        if unknown:
            raise NotImplementedError(f"{self._stack.name}: {name} has {', '.join(sorted(unknown))}")
        properties = definition.get("Properties", {})
        if definition["Type"].startswith(_CUSTOM):
            arguments = [f"type={definition['Type']!r}", f"properties={self._raw(properties)}"]
            yield self._construct(name, "cdk.CfnResource", arguments)
        else:
            service, kind = typed_class(definition["Type"])
            self.services.add(service)
            cls = getattr(module_of(service), kind)
            yield self._construct(name, f"{service}.{kind}", self._arguments(cls, properties, f"{service}.{kind}"))
        variable = self._variable(name)
        for dependency in _as_list(definition.get("DependsOn", [])):
            yield f"{variable}.add_resource_dependency({self._variable(dependency)})"
        yield from self._policies(variable, definition)
        for key in ("UpdatePolicy", "CreationPolicy"):
            if key in definition:
                policy = ", ".join(self._arguments(getattr(aws_cdk, f"Cfn{key}"), definition[key]))
                yield f"{variable}.cfn_options.{snake(key)} = cdk.Cfn{key}({policy})"
        for key, value in definition.get("Metadata", {}).items():
            yield f"{variable}.add_metadata({key!r}, {self._raw(value)})"
        if "Condition" in definition:
            yield f"{variable}.cfn_options.condition = {self._variable(definition['Condition'])}"

    def _policies(self, variable: str, definition: Mapping[str, Any]) -> Iterator[str]:
        deletion, replacement = definition.get("DeletionPolicy"), definition.get("UpdateReplacePolicy")
        if deletion and replacement and (deletion, replacement) in _REMOVAL_POLICIES:
            yield f"{variable}.apply_removal_policy(cdk.RemovalPolicy.{_REMOVAL_POLICIES[deletion, replacement]})"
            return
        for key, policy in (("deletion_policy", deletion), ("update_replace_policy", replacement)):
            if policy is not None:
                yield f"{variable}.cfn_options.{key} = cdk.CfnDeletionPolicy.{_DELETION_POLICIES[policy]}"

    def _output(self, output: Mapping[str, Any]) -> Iterator[str]:
        yield f"value={self._value(output['Value'], str)}"
        if "Description" in output:
            yield f"description={output['Description']!r}"
        if "Export" in output:
            yield f"export_name={self._value(output['Export']['Name'], str)}"
        if "Condition" in output:
            yield f"condition={self._variable(output['Condition'])}"

    def _arguments(self, cls: type, properties: Mapping[str, Any], named: str = "") -> list[str]:
        """Write the properties of a typed class as its keyword arguments.

        Raises:
            NotImplementedError: The class does not know one of them.
        """
        hints = typing.get_type_hints(cls.__init__)  # type: ignore[misc]  # its arguments are all that is wanted
        keywords = {hint.replace("_", ""): hint for hint in hints}
        unknown = [name for name in properties if name.lower() not in keywords]
        if unknown:
            raise NotImplementedError(f"{named or cls.__qualname__} of aws_cdk does not know {', '.join(unknown)}")
        return [
            f"{keywords[name.lower()]}={self._value(value, hints[keywords[name.lower()]])}"
            for name, value in properties.items()
        ]

    def _value(self, value: Any, hint: Any) -> str:  # noqa: ANN401 - any JSON, any type
        """Write a value where a typed class wants the hinted type."""
        written = self._intrinsic(value)
        if written is not None:
            return as_wanted(written, hint) if "Fn::If" in value else written
        if isinstance(value, dict):
            for choice in choices_of(hint):
                if hasattr(choice, "__jsii_name_mapping__"):
                    arguments = ", ".join(self._arguments(choice, value))
                    return f"{self._class_name(choice)}({arguments})"
                if typing.get_origin(choice) is MAPPING:
                    item = typing.get_args(choice)[1]
                    return "{" + ", ".join(f"{k!r}: {self._value(v, item)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            for choice in choices_of(hint):
                if typing.get_origin(choice) is SEQUENCE:
                    item = typing.get_args(choice)[0]
                    return "[" + ", ".join(self._value(each, item) for each in value) + "]"
        return self._raw(value)

    def _class_name(self, struct: type) -> str:
        service = struct.__module__.removeprefix("aws_cdk").removeprefix(".")
        if not service:
            return f"cdk.{struct.__qualname__}"
        self.services.add(service)
        return f"{service}.{struct.__qualname__}"

    def _raw(self, value: Any) -> str:  # noqa: ANN401 - any JSON
        """Write a value where the class takes anything."""
        written = self._intrinsic(value)
        if written is not None:
            return written
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self._raw(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self._raw, value)) + "]"
        return repr(value)

    def _intrinsic(self, value: Any) -> str | None:  # noqa: ANN401 - any JSON
        """Write a function of CloudFormation as CDK users do; None if it is none."""
        if not isinstance(value, dict) or len(value) != 1:
            return None
        ((function, argument),) = value.items()
        if function in self._special:
            return self._special[function](argument)
        if function in _FUNCTIONS:
            several = isinstance(argument, list) and function != "Fn::Base64"
            arguments = argument if several else [argument]
            return f"cdk.Fn.{_FUNCTIONS[function]}({', '.join(map(self._raw, arguments))})"
        if function.startswith("Fn::"):
            raise NotImplementedError(f"{self._stack.name}: no app can be written for {function}")
        return None

    def _import(self, name: Any) -> str | None:  # noqa: ANN401 - any JSON
        if not isinstance(name, str) or name not in self._exports:
            return f"cdk.Fn.import_value({self._raw(name)})"
        exporter, exported = self._exports[name]
        return _StackWriter(exporter, self._exports)._intrinsic(exported)

    def _if(self, argument: list[Any]) -> str:
        name, *values = argument
        return f"cdk.Fn.condition_if({', '.join([repr(name), *map(self._raw, values)])})"

    def _ref(self, name: str) -> str:
        if name in _PSEUDO_PARAMETERS:
            return f"cdk.Aws.{_PSEUDO_PARAMETERS[name]}"
        parameter = self._template.get("Parameters", {}).get(name)
        if parameter is None:
            return f"{self._variable(name)}.ref"
        kind = parameter["Type"]
        value = "value_as_list" if "List" in kind else "value_as_number" if kind == "Number" else "value_as_string"
        return f"{self._variable(name)}.{value}"

    def _attribute(self, argument: str | list[str]) -> str:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        resource_type = self._template["Resources"][name]["Type"]
        cls = aws_cdk.CfnResource
        if not resource_type.startswith(_CUSTOM):
            service, kind = typed_class(resource_type)
            cls = getattr(module_of(service), kind)
        wanted = f"attr{attribute}".replace(".", "").lower()
        for member in dir(cls):
            if member.startswith("attr_") and member.replace("_", "") == wanted:
                return f"{self._variable(name)}.{member}"
        return f"{self._variable(name)}.get_att({attribute!r}).to_string()"

    def _condition(self, condition: Mapping[str, Any]) -> str:
        ((function, argument),) = condition.items()
        if function == "Condition":
            return self._variable(argument)
        if function not in _CONDITIONS:
            raise NotImplementedError(f"{self._stack.name}: no app can be written for {function} in a condition")
        write = self._raw if function == "Fn::Equals" else self._condition
        return f"cdk.Fn.{_CONDITIONS[function]}({', '.join(map(write, argument))})"


def _as_list(value: Any) -> list[str]:  # noqa: ANN401 - one name or several
    return [value] if isinstance(value, str) else list(value)
