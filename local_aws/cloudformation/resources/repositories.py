"""Image repositories, keys and parameters: the rest of what the CDK's bootstrap stack needs."""

import json

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    picked,
    tag_changes,
    tags_of,
)


class Repository(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ecr-repository.html."""

    type = "AWS::ECR::Repository"
    carries_out = frozenset(
        {
            "EmptyOnDelete",
            "ImageScanningConfiguration",
            "ImageTagMutability",
            "LifecyclePolicy",
            "RepositoryName",
            "RepositoryPolicyText",
            "Tags",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("RepositoryName") or call.physical_name(256, lower=True)
        scanning = properties.get("ImageScanningConfiguration")
        repository = call.client("ecr").create_repository(
            repositoryName=name,
            tags=as_tags(tags_of(properties)),
            imageTagMutability=properties.get("ImageTagMutability", "MUTABLE"),
            **({"imageScanningConfiguration": {"scanOnPush": scanning["ScanOnPush"]}} if scanning else {}),
        )["repository"]
        call.made(name)
        self._write(call, properties)
        return {"Arn": repository["repositoryArn"], "RepositoryUri": repository["repositoryUri"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "EmptyOnDelete", "LifecyclePolicy", "RepositoryPolicyText")
        self._write(call, properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("ecr").delete_repository(
            repositoryName=call.physical_id, force=call.properties.get("EmptyOnDelete", False)
        )

    @staticmethod
    def _write(call: Call, properties: Properties) -> None:
        ecr, name = call.client("ecr"), call.physical_id
        lifecycle, policy = properties.get("LifecyclePolicy"), properties.get("RepositoryPolicyText")
        if lifecycle:
            ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=lifecycle["LifecyclePolicyText"])
        if policy:
            text = policy if isinstance(policy, str) else json.dumps(policy)
            ecr.set_repository_policy(repositoryName=name, policyText=text)


class Key(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-kms-key.html."""

    type = "AWS::KMS::Key"
    carries_out = frozenset(
        {"Description", "EnableKeyRotation", "KeyPolicy", "KeySpec", "KeyUsage", "PendingWindowInDays", "Tags"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        kms = call.client("kms")
        policy = properties.get("KeyPolicy")
        key = kms.create_key(
            **picked(properties, "Description", "KeySpec", "KeyUsage"),
            **({"Policy": json.dumps(policy)} if policy else {}),
            Tags=[{"TagKey": name, "TagValue": value} for name, value in tags_of(properties).items()],
        )["KeyMetadata"]
        call.made(key["KeyId"])
        if properties.get("EnableKeyRotation"):
            kms.enable_key_rotation(KeyId=key["KeyId"])
        return {"Arn": key["Arn"], "KeyId": key["KeyId"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, "EnableKeyRotation", "KeyPolicy", "PendingWindowInDays")
        kms = call.client("kms")
        if "KeyPolicy" in names:
            kms.put_key_policy(
                KeyId=call.physical_id, PolicyName="default", Policy=json.dumps(properties["KeyPolicy"])
            )
        if "EnableKeyRotation" in names:
            rotate = kms.enable_key_rotation if properties.get("EnableKeyRotation") else kms.disable_key_rotation
            rotate(KeyId=call.physical_id)
        return {}

    def delete(self, call: Call) -> None:
        call.client("kms").schedule_key_deletion(
            KeyId=call.physical_id, PendingWindowInDays=call.properties.get("PendingWindowInDays", 30)
        )


class Alias(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-kms-alias.html."""

    type = "AWS::KMS::Alias"
    carries_out = frozenset({"AliasName", "TargetKeyId"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        call.client("kms").create_alias(**properties)
        call.made(properties["AliasName"])
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "TargetKeyId")
        call.client("kms").update_alias(**properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("kms").delete_alias(AliasName=call.physical_id)


class Parameter(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ssm-parameter.html."""

    type = "AWS::SSM::Parameter"
    carries_out = frozenset({"AllowedPattern", "DataType", "Description", "Name", "Tags", "Tier", "Type", "Value"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("Name") or call.physical_name()
        # SSM's schema wants the tags as a mapping.
        tags = as_tags(properties.get("Tags") or {})
        settings = {key: value for key, value in properties.items() if key not in {"Name", "Tags"}}
        call.client("ssm").put_parameter(Name=name, **settings, **({"Tags": tags} if tags else {}))
        call.made(name)
        return {"Type": properties["Type"], "Value": properties["Value"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        ssm, name = call.client("ssm"), call.physical_id
        settings = {key: value for key, value in properties.items() if key not in {"Name", "Tags"}}
        ssm.put_parameter(Name=name, Overwrite=True, **settings)
        put, removed = tag_changes(
            {"Tags": as_tags(properties.get("Tags") or {})}, {"Tags": as_tags(before.get("Tags") or {})}
        )
        if put:
            ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=name, Tags=as_tags(put))
        if removed:
            ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId=name, TagKeys=removed)
        return {"Type": properties["Type"], "Value": properties["Value"]}

    def delete(self, call: Call) -> None:
        call.client("ssm").delete_parameter(Name=call.physical_id)


HANDLERS: tuple[Handler, ...] = (Repository(), Key(), Alias(), Parameter())
