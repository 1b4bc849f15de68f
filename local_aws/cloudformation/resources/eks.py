"""Clusters, managed node groups, add-ons, access entries and Pod Identity associations of EKS.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_EKS.html
"""

from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    changed,
    if_there,
    tags_of,
    wait_for_termination,
)

_CREATE_CLUSTER = Action(
    "create_cluster",
    "AccessConfig BootstrapSelfManagedAddons EncryptionConfig KubeSchedulerConfig KubernetesNetworkConfig Logging "
    "ResourcesVpcConfig RoleArn UpgradePolicy Version",
)
_GROUP_PROPERTIES = (
    "AmiType CapacityType DiskSize InstanceTypes Labels LaunchTemplate NodeRepairConfig NodeRole ReleaseVersion "
    "RemoteAccess ScalingConfig Subnets Taints UpdateConfig Version WarmPoolConfig"
)
_GROUP_CONFIG = ("ScalingConfig", "NodeRepairConfig", "UpdateConfig", "WarmPoolConfig")
_GROUP_VERSION = ("LaunchTemplate", "ReleaseVersion", "Version")
_ADD_ON_PROPERTIES = "AddonName AddonVersion ClusterName ConfigurationValues PodIdentityAssociations ResolveConflicts"


def _camel(value: Any) -> Any:
    """Return what a template says with the names of the API, which begin with a small letter."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _camel(item) for name, item in value.items()}
    return value


def _asked(properties: Properties, *names: str) -> dict[str, Any]:
    found = {name[0].lower() + name[1:]: _camel(properties[name]) for name in names if name in properties}
    if "labels" in found:
        found["labels"] = dict(properties["Labels"])
    return found


def _vpc(properties: Properties) -> dict[str, Any]:
    return dict(_camel(properties["ResourcesVpcConfig"]))


def _logging(properties: Properties) -> dict[str, Any]:
    types = ((properties.get("Logging") or {}).get("ClusterLogging") or {}).get("EnabledTypes") or []
    return {"clusterLogging": [{"types": [each["Type"] for each in types], "enabled": True}]}


class _Cluster(Handler):
    """A cluster; its name is the physical id."""

    type = "AWS::EKS::Cluster"
    supported = frozenset({*_CREATE_CLUSTER.properties, "Name", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        asked = _asked(properties, *(_CREATE_CLUSTER.properties - {"Logging", "ResourcesVpcConfig"}))
        name = properties.get("Name") or call.physical_name(100)
        cluster = call.client("eks").create_cluster(
            name=name,
            **asked,
            resourcesVpcConfig=_vpc(properties),
            logging=_logging(properties),
            tags=tags_of(properties),
        )["cluster"]
        call.made(name)
        return {
            "Arn": cluster["arn"],
            "Endpoint": cluster["endpoint"],
            "CertificateAuthorityData": cluster["certificateAuthority"]["data"],
            "ClusterSecurityGroupId": cluster["resourcesVpcConfig"]["clusterSecurityGroupId"],
            "OpenIdConnectIssuerUrl": cluster["identity"]["oidc"]["issuer"],
        }

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(
            properties, before, "KubeSchedulerConfig", "Logging", "ResourcesVpcConfig", "Tags", "Version"
        )
        eks, name = call.client("eks"), call.physical_id
        # One setting a request. https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterConfig.html
        if "KubeSchedulerConfig" in names:
            eks.update_cluster_config(name=name, **_asked(properties, "KubeSchedulerConfig"))
        if "Logging" in names:
            eks.update_cluster_config(name=name, logging=_logging(properties))
        if "ResourcesVpcConfig" in names:
            eks.update_cluster_config(name=name, resourcesVpcConfig=_vpc(properties))
        if "Version" in names:
            eks.update_cluster_version(name=name, version=properties["Version"])
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("eks").delete_cluster, name=call.physical_id)


class _NodeGroup(Handler):
    """A managed node group; CloudFormation waits until it has the nodes that it desires."""

    type = "AWS::EKS::Nodegroup"
    supported = frozenset({*_GROUP_PROPERTIES.split(), "ClusterName", "NodegroupName", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        cluster, name = properties["ClusterName"], properties.get("NodegroupName") or call.physical_name(63)
        asked = _asked(properties, *_GROUP_PROPERTIES.split())
        group = call.client("eks").create_nodegroup(
            clusterName=cluster, nodegroupName=name, **asked, tags=tags_of(properties)
        )["nodegroup"]
        call.made(f"{cluster}/{name}")
        self._wait(call)
        return {"Arn": group["nodegroupArn"], "ClusterName": cluster, "NodegroupName": name, "Id": call.physical_id}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        allowed = (*_GROUP_CONFIG, *_GROUP_VERSION, "Labels", "Taints", "Tags")
        names, eks, place = self.only_changed(properties, before, *allowed), call.client("eks"), self._place(call)
        if names & set(_GROUP_VERSION) and names - set(_GROUP_VERSION):
            # The handler says so also of tags and of a launch template: https://github.com/aws/aws-cdk/issues/16644
            raise HandlerError(
                "Version and ReleaseVersion updates cannot be combined with other updates", "InvalidRequest"
            )
        config = _asked(properties, *(name for name in _GROUP_CONFIG if name in names))
        config.pop("scalingConfig", None)
        if "Labels" in names:
            new, old = properties.get("Labels") or {}, before.get("Labels") or {}
            config["labels"] = {"addOrUpdateLabels": new, "removeLabels": sorted(old.keys() - new.keys())}
        if "Taints" in names:
            gone = [taint for taint in before.get("Taints") or [] if taint not in (properties.get("Taints") or [])]
            config["taints"] = {
                "addOrUpdateTaints": _camel(properties.get("Taints") or []),
                "removeTaints": _camel(gone),
            }
        if "Tags" in names:
            arn = eks.describe_nodegroup(**place)["nodegroup"]["nodegroupArn"]
            gone = sorted(tags_of(before).keys() - tags_of(properties).keys())
            if gone:
                eks.untag_resource(resourceArn=arn, tagKeys=gone)
            eks.tag_resource(resourceArn=arn, tags=tags_of(properties))
        if config or names & {"ScalingConfig", "Tags"}:
            # Whether an update of labels or tags sends the sizes as well, no document says; a changed size sends all.
            # https://github.com/eksctl-io/eksctl/issues/3532 and, of another controller of AWS's that sends them with
            # labels, https://github.com/aws-controllers-k8s/eks-controller/blob/main/pkg/resource/nodegroup/hook.go
            # A size that the template does not have changes nothing:
            # https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html
            eks.update_nodegroup_config(**place, **_asked(properties, "ScalingConfig"), **config)
        if names & set(_GROUP_VERSION):
            eks.update_nodegroup_version(**place, **_asked(properties, *_GROUP_VERSION))
        self._wait(call)
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("eks").delete_nodegroup, **self._place(call))
        call.physical_id = call.physical_id.partition("/")[2]
        wait_for_termination(call, "eks:nodegroup-name")

    @staticmethod
    def _place(call: Call) -> dict[str, str]:
        cluster, _, name = call.physical_id.partition("/")
        return {"clusterName": cluster, "nodegroupName": name}

    def _wait(self, call: Call) -> None:
        group = call.client("eks").describe_nodegroup(**self._place(call))["nodegroup"]
        name = group["resources"]["autoScalingGroups"][0]["name"]
        answer = call.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        running = len(answer["AutoScalingGroups"][0]["Instances"])
        if running < group["scalingConfig"]["desiredSize"]:
            # https://docs.aws.amazon.com/eks/latest/APIReference/API_Issue.html
            raise HandlerError(
                f"[Issue(Code=AsgInstanceLaunchFailures, Message=Could not launch On-Demand Instances. {running} of "
                f"{group['scalingConfig']['desiredSize']} run, ResourceIds=[{name}])]",
                "NotStabilized",
            )


class _AddOn(Handler):
    """An add-on."""

    type = "AWS::EKS::Addon"
    supported = frozenset({*_ADD_ON_PROPERTIES.split(), "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        asked = _asked(properties, *_ADD_ON_PROPERTIES.split())
        add_on = call.client("eks").create_addon(**asked, tags=tags_of(properties))["addon"]
        call.made(f"{properties['ClusterName']}|{properties['AddonName']}")
        return {"Arn": add_on["addonArn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        taken = ("AddonVersion", "ConfigurationValues", "PodIdentityAssociations", "ResolveConflicts")
        if self.only_changed(properties, before, *taken, "Tags") & set(taken):
            call.client("eks").update_addon(**self._place(call), **_asked(properties, *taken))
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("eks").delete_addon, **self._place(call))

    @staticmethod
    def _place(call: Call) -> dict[str, str]:
        cluster, _, name = call.physical_id.partition("|")
        return {"clusterName": cluster, "addonName": name}


class _AccessEntry(Handler):
    """An access entry with its policies."""

    type = "AWS::EKS::AccessEntry"
    supported = frozenset({"AccessPolicies", "ClusterName", "PrincipalArn", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        eks, place = call.client("eks"), _asked(properties, "ClusterName", "PrincipalArn")
        entry = eks.create_access_entry(**place, tags=tags_of(properties))["accessEntry"]
        call.made(f"{properties['PrincipalArn']}|{properties['ClusterName']}")
        self._associate(eks, place, properties)
        return {"AccessEntryArn": entry["accessEntryArn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if "AccessPolicies" in changed(properties, before):
            self._associate(call.client("eks"), _asked(properties, "ClusterName", "PrincipalArn"), properties)
        return {}

    def delete(self, call: Call) -> None:
        principal, _, cluster = call.physical_id.partition("|")
        if_there(call.client("eks").delete_access_entry, clusterName=cluster, principalArn=principal)

    @staticmethod
    def _associate(eks: Any, place: dict[str, Any], properties: Properties) -> None:
        for policy in properties.get("AccessPolicies") or []:
            eks.associate_access_policy(**place, **_camel(policy))


class _PodIdentityAssociation(Handler):
    """The role of a service account."""

    type = "AWS::EKS::PodIdentityAssociation"
    supported = frozenset({"ClusterName", "Namespace", "RoleArn", "ServiceAccount", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        asked = _asked(properties, *(self.supported - {"Tags"}))
        made = call.client("eks").create_pod_identity_association(**asked, tags=tags_of(properties))["association"]
        call.made(made["associationArn"])
        return {
            "AssociationArn": made["associationArn"],
            "AssociationId": made["associationId"],
        }

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if "RoleArn" in self.only_changed(properties, before, "RoleArn", "Tags"):
            call.client("eks").update_pod_identity_association(**self._place(call), roleArn=properties["RoleArn"])
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("eks").delete_pod_identity_association, **self._place(call))

    @staticmethod
    def _place(call: Call) -> dict[str, str]:
        _, cluster, identity = call.physical_id.split("/")
        return {"clusterName": cluster, "associationId": identity}


HANDLERS: tuple[Handler, ...] = (_Cluster(), _NodeGroup(), _AddOn(), _AccessEntry(), _PodIdentityAssociation())
