"""The one place where moto is changed: what is put in, where, and why.

moto has no plug-in interface; EC2 actions and the like are methods of its response classes and backends.
Every change to them is a row below and nothing else in this project touches moto's classes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from moto import backends
from moto.amp import urls as prometheus_urls
from moto.amp.responses import PrometheusServiceResponse
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.awslambda import urls as lambda_urls
from moto.awslambda.models import LambdaBackend
from moto.awslambda.responses import LambdaResponse
from moto.batch.responses import BatchResponse
from moto.budgets.responses import BudgetsResponse
from moto.cloudformation import urls as cloudformation_urls
from moto.cloudwatch.models import CloudWatchBackend
from moto.cloudwatch.responses import CloudWatchResponse
from moto.ec2.models import EC2Backend
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance
from moto.ec2.responses import EC2Response
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX
from moto.eks import urls as eks_urls
from moto.eks.responses import EKSResponse
from moto.events.models import EventsBackend, Rule
from moto.events.responses import EventsHandler
from moto.fsx.responses import FSxResponse
from moto.iam.models import IAMBackend
from moto.iam.responses import IamResponse
from moto.logs.models import LogsBackend
from moto.resourcegroups import urls as resource_groups_urls
from moto.resourcegroups.responses import ResourceGroupsResponse
from moto.s3.models import FakeBucket, S3Backend
from moto.s3.responses import S3Response
from moto.sagemaker.responses import SageMakerResponse
from moto.servicequotas.responses import ServiceQuotasResponse
from moto.ssm.responses import SimpleSystemManagerResponse
from moto.sts.responses import TokenResponse

from local_aws import defaults
from local_aws.cloudformation.api import CloudFormationApi
from local_aws.services import (
    alarms,
    auto_scaling,
    automations,
    batch,
    buckets,
    budgets,
    capacity_reservations,
    command_documents,
    dashboards,
    directory_buckets,
    eks,
    event_invocations,
    events,
    group_members,
    hyperpod,
    images,
    instances,
    invocations,
    keys,
    launches,
    layers,
    lifecycle_hooks,
    log_delivery,
    lustre,
    lustre_associations,
    lustre_tasks,
    managed_nodes,
    metric_data,
    networks,
    placement_groups,
    prices,
    prometheus,
    quotas,
    reserved_launches,
    resource_groups,
    role_sessions,
    roles,
    run_command,
    scaling_activities,
    session_manager,
    simulations,
    spot_fleets,
    spot_instances,
    standby,
    stops,
    suspensions,
    warm_pools,
)

# What moto lacks or does otherwise than AWS: (class, what takes the place of its method of this name, why).
REPLACEMENTS: tuple[tuple[type, Any, str], ...] = (
    (EC2Response, placement_groups.create_placement_group, "missing"),
    (EC2Response, placement_groups.describe_placement_groups, "missing"),
    (EC2Response, placement_groups.delete_placement_group, "missing"),
    (EC2Response, capacity_reservations.create_capacity_reservation, "missing"),
    (EC2Response, capacity_reservations.describe_capacity_reservations, "missing"),
    (EC2Response, capacity_reservations.modify_capacity_reservation, "missing"),
    (EC2Response, capacity_reservations.cancel_capacity_reservation, "missing"),
    (EC2Response, launches.run_instances, "refuses nothing; keeps one interface a device index"),
    (EC2Response, instances.describe_instances, "pages by reservations, slowly"),
    (EC2Response, stops.stop_instances, "stops nearly anything, and some before it refuses"),
    (EC2Response, spot_instances.describe_spot_instance_requests, "hides unknown ids and has no pages"),
    (EC2Response, prices.describe_spot_price_history, "has one price for everything, since 2006"),
    (EC2Response, spot_fleets.request_spot_fleet, "launches nothing from launch templates"),
    (EC2Response, spot_fleets.describe_spot_fleet_requests, "hides unknown ids"),
    (EC2Response, spot_fleets.describe_spot_fleet_instances, "hides unknown ids"),
    (EC2Response, spot_fleets.describe_spot_fleet_request_history, "missing"),
    (EC2Response, spot_fleets.modify_spot_fleet_request, "takes the target alone"),
    (EC2Response, spot_fleets.cancel_spot_fleet_requests, "forgets the request"),
    (
        AutoScalingResponse,
        auto_scaling.create_auto_scaling_group,
        "never tries the launch template out; replaces a group of the same name",
    ),
    (
        AutoScalingResponse,
        auto_scaling.update_auto_scaling_group,
        "forgets the mixed policy and ignores half of the parameters",
    ),
    (AutoScalingResponse, auto_scaling.delete_auto_scaling_group, "needs no ForceDelete"),
    (
        AutoScalingResponse,
        group_members.terminate_instance_in_auto_scaling_group,
        "goes below the least size, and fails on strangers",
    ),
    (
        AutoScalingResponse,
        auto_scaling.by_names_or_filters(AutoScalingResponse.describe_auto_scaling_groups),
        "takes names and filters together",
    ),
    (AutoScalingResponse, standby.enter_standby, "puts strangers into Standby, and goes below the least size"),
    (AutoScalingResponse, standby.exit_standby, "takes instances that are in service, and goes above the greatest"),
    (AutoScalingResponse, lifecycle_hooks.complete_lifecycle_action, "missing"),
    (AutoScalingResponse, scaling_activities.describe_scaling_activities, "always empty"),
    (AutoScalingResponse, suspensions.suspend_processes, "fails on strangers"),
    (AutoScalingResponse, suspensions.resume_processes, "launches nothing then"),
    (AutoScalingResponse, warm_pools.put_warm_pool, "launches nothing into it"),
    (AutoScalingResponse, warm_pools.describe_warm_pool, "is always empty"),
    (AutoScalingResponse, warm_pools.delete_warm_pool, "has no instances"),
    (
        AutoScalingBackend,
        warm_pools.with_warm_instances(AutoScalingBackend.describe_auto_scaling_instances),
        "shows no warm ones",
    ),
    (FakeAutoScalingGroup, auto_scaling.set_desired_capacity, "EC2 always has capacity"),
    (
        CloudWatchResponse,
        alarms.checked(keys.checked_alarm(CloudWatchResponse.put_metric_alarm)),
        "takes any period, any number of data points and topics that CloudWatch cannot write to",
    ),
    (CloudWatchBackend, alarms.announced(CloudWatchBackend.set_alarm_state), "sends no event"),
    (
        CloudWatchResponse,
        metric_data.of_users_alone(CloudWatchResponse.put_metric_data),
        "takes data in the namespaces of AWS's own services",
    ),
    (
        CloudWatchResponse,
        metric_data.by_metric(CloudWatchResponse.get_metric_data),
        "searches everything, mixes namespaces up, knows no limits and is always complete",
    ),
    (BudgetsResponse, budgets.checked(BudgetsResponse.create_budget), "takes any notifications and any topic"),
    (BudgetsResponse, budgets.update_budget, "missing"),
    (BudgetsResponse, budgets.describe_subscribers_for_notification, "missing"),
    (CloudWatchBackend, dashboards.checked(CloudWatchBackend.put_dashboard), "takes any JSON"),
    (
        PrometheusServiceResponse,
        prometheus.checked_workspace(PrometheusServiceResponse.create_workspace),
        "takes any key",
    ),
    *(
        (PrometheusServiceResponse, prometheus.checked_rules(action), "reads no rules")
        for action in (
            PrometheusServiceResponse.create_rule_groups_namespace,
            PrometheusServiceResponse.put_rule_groups_namespace,
        )
    ),
    *(
        (PrometheusServiceResponse, action, "missing")
        for action in (
            prometheus.create_alert_manager_definition,
            prometheus.put_alert_manager_definition,
            prometheus.describe_alert_manager_definition,
            prometheus.delete_alert_manager_definition,
            prometheus.update_workspace_configuration,
            prometheus.describe_workspace_configuration,
        )
    ),
    *((BatchResponse, action, "runs containers in Docker, and no nodes for them") for action in batch.ACTIONS),
    *(
        (EKSResponse, action, "runs no nodes" if hasattr(EKSResponse, action.__name__) else "missing")
        for action in eks.ACTIONS
    ),
    (LogsBackend, log_delivery.with_more_services(LogsBackend.put_delivery_source), "knows fewer services"),
    *(
        (SageMakerResponse, action, "sizes nothing" if hasattr(SageMakerResponse, action.__name__) else "missing")
        for action in hyperpod.ACTIONS
    ),
    *(
        (SageMakerResponse, hyperpod.tagged(action), "knows no tags of HyperPod clusters")
        for action in (SageMakerResponse.list_tags, SageMakerResponse.add_tags, SageMakerResponse.delete_tags)
    ),
    (LogsBackend, keys.checked_log_group(LogsBackend.create_log_group), "takes any key"),
    (EventsBackend, events.checked_targets(EventsBackend.put_targets), "takes any constant input"),
    (EventsHandler, events.authorized(EventsHandler.put_events), "asks no policy"),
    (EventsBackend, events.checked_events(EventsBackend.put_events), "takes events in the name of AWS"),
    (Rule, events.with_functions(Rule.send_to_targets), "calls no functions and reaches no topics"),
    (TokenResponse, role_sessions.authorized(TokenResponse.assume_role), "gives sessions of any role to anybody"),
    (IAMBackend, roles.checked(IAMBackend.create_role), "takes any trust policy"),
    (IamResponse, simulations.simulate_principal_policy, "missing"),
    (LambdaResponse, invocations.invoke, "needs Docker"),
    (LambdaResponse, quotas.get_account_settings, "missing"),
    (ServiceQuotasResponse, quotas.get_service_quota, "knows VPC's alone"),
    (ServiceQuotasResponse, quotas.get_aws_default_service_quota, "missing"),
    (EC2Response, quotas.get_spot_placement_scores, "missing"),
    (SimpleSystemManagerResponse, automations.start_automation_execution, "missing"),
    (SimpleSystemManagerResponse, automations.get_automation_execution, "missing"),
    *(
        (SimpleSystemManagerResponse, command_documents.checked(action), "reads no content")
        for action in (SimpleSystemManagerResponse.create_document, SimpleSystemManagerResponse.update_document)
    ),
    (SimpleSystemManagerResponse, managed_nodes.describe_instance_information, "missing"),
    (SimpleSystemManagerResponse, run_command.send_command, "runs nothing, on any instance"),
    (SimpleSystemManagerResponse, run_command.get_command_invocation, "knows no output"),
    (SimpleSystemManagerResponse, run_command.list_command_invocations, "missing"),
    (SimpleSystemManagerResponse, session_manager.describe_sessions, "missing"),
    (
        ResourceGroupsResponse,
        resource_groups.checked(ResourceGroupsResponse.create_group),
        "takes half of a configuration",
    ),
    (
        ResourceGroupsResponse,
        resource_groups.checked(ResourceGroupsResponse.put_group_configuration),
        "takes half of a configuration",
    ),
    (ResourceGroupsResponse, resource_groups.group_resources, "missing"),
    (ResourceGroupsResponse, resource_groups.ungroup_resources, "missing"),
    (ResourceGroupsResponse, resource_groups.list_group_resources, "is not implemented"),
    (FSxResponse, lustre.create_file_system, "checks nothing and lies in no subnet"),
    (FSxResponse, lustre.describe_file_systems, "hides unknown ids"),
    (FSxResponse, lustre.update_file_system, "missing"),
    (FSxResponse, lustre.delete_file_system, "knows of no links or interfaces"),
    *(
        (FSxResponse, action, "missing")
        for action in (
            lustre_associations.create_data_repository_association,
            lustre_associations.update_data_repository_association,
            lustre_associations.describe_data_repository_associations,
            lustre_associations.delete_data_repository_association,
            lustre_tasks.create_data_repository_task,
            lustre_tasks.describe_data_repository_tasks,
            lustre_tasks.cancel_data_repository_task,
        )
    ),
)

# Likewise, where what takes the place of a method has another name than the method.
_OTHERS: tuple[tuple[type, str, Any, str], ...] = (
    (Instance, "cpu_options", property(instances.cpu_options), "missing"),
    (Instance, "state_transition_reason", property(instances.transition_reason), "writes UTC where EC2 writes GMT"),
    (TaggedEC2Resource, "get_tags", instances.tags_of, "reads the tags of all resources"),
    (
        NetworkInterface,
        "attachment",
        launches.attachment_with_its_card(NetworkInterface.attachment),
        "always says network card 0",
    ),
    (AutoScalingResponse, "set_desired_capacity", auto_scaling.set_desired_capacity_action, "takes any size"),
    (
        FakeAutoScalingGroup,
        "suspended_processes",
        property(suspensions.described, suspensions.clear),
        "does not say who suspended them, nor when",
    ),
    (FakeAutoScalingGroup, "warm_pool_size", property(warm_pools.size_of), "missing"),
    (
        FakeAutoScalingGroup,
        "replace_autoscaling_group_instances",
        auto_scaling.launch_more,
        "launches with one interface, no placement group and the default template version",
    ),
    (S3Backend, "list_buckets", directory_buckets.others_alone(S3Backend.list_buckets), "lists all buckets"),
    (
        S3Response,
        "_bucket_response_put",
        directory_buckets.checked(S3Response._bucket_response_put),
        "knows no directory buckets",
    ),
    (FakeBucket, "get_permission", buckets.permission_by_policy, "denies where a condition does not hold"),
    (LambdaResponse, "put_function_event_invoke_config", event_invocations.put_config, "knows one for all aliases"),
    (LambdaResponse, "get_function_event_invoke_config", event_invocations.get_config, "knows one for all aliases"),
    (LambdaResponse, "delete_function_event_invoke_config", event_invocations.delete_config, "deletes all aliases'"),
    (
        LambdaBackend,
        "create_function",
        invocations.with_log_group(LambdaBackend.create_function),
        "logs into /aws/lambda/ alone",
    ),
    (
        LambdaBackend,
        "add_permission",
        event_invocations.permitted(LambdaBackend.add_permission),
        "takes a permission for an alias for one for the function",
    ),
    (LambdaBackend, "layers_versions_by_arn", layers.layer_version_by_arn, "sees no other account's layers"),
)

# What goes before a method of EC2's backend: moto does what is asked although something that it depends on is
# missing, or something still depends on it.
_GUARDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("delete_vpc", networks.guard_vpc),
    ("delete_subnet", networks.guard_subnet),
    ("delete_security_group", networks.guard_security_group),
    ("detach_internet_gateway", networks.guard_gateway_detachment),
    ("release_address", networks.guard_address),
    ("create_security_group", networks.guard_group_creation),
    ("create_tags", capacity_reservations.guard_tags),
    ("create_vpc_endpoint", networks.guard_endpoint),
    ("start_instances", reserved_launches.guard_start),
)

# What follows upon one: moto leaves something behind for ever, or is through at once.
_AFTERMATHS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("delete_nat_gateway", networks.after_nat_gateway),
    ("terminate_instances", placement_groups.shut_down),
)

# Paths of services that moto does not listen to.
_PATHS: tuple[tuple[dict[str, Any], str, Any], ...] = (
    (lambda_urls.url_paths, "{0}/2016-08-19/account-settings/?$", LambdaResponse.dispatch),
    *(
        (
            prometheus_urls.url_paths,
            "{0}/workspaces/(?P<workspace_id>[^/]+)/" + path + "$",
            PrometheusServiceResponse.dispatch,
        )
        for path in ("alertmanager/definition", "configuration")
    ),
    *((eks_urls.url_paths, "{0}/clusters/(?P<name>[^/]+)/" + path + "$", EKSResponse.dispatch) for path in eks.PATHS),
    *(
        (resource_groups_urls.url_paths, "{0}/" + path + "$", ResourceGroupsResponse.dispatch)
        for path in ("group-resources", "ungroup-resources", "list-group-resources")
    ),
)

# Kinds of EC2 resources that moto cannot tag, and how their ids begin.
_TAGGED_KINDS: tuple[tuple[str, str], ...] = (("capacity-reservation", "cr"),)


def _one_after_the_other(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls both with the same arguments; a deletion's guard and aftermath return nothing."""

    def both(*arguments: Any, **named: Any) -> Any:
        answers = [each(*arguments, **named) for each in (first, second)]
        return next((answer for answer in answers if answer is not None), None)

    return both


def install(*, endpoint_url: str, account: str, region: str, workspace: Path) -> None:
    """Put the extensions into moto; call it once, before the server answers its first request.

    Args:
        endpoint_url: Where this server answers: CloudFormation and functions call the services there.
        account: The account whose public images are prepared.
        region: The region, likewise.
        workspace: Where functions are unpacked.
    """
    for owner, replacement, _why in REPLACEMENTS:
        setattr(owner, replacement.__name__, replacement)
    for owner, name, replacement, _why in _OTHERS:
        setattr(owner, name, replacement)
    for name, guard in _GUARDS:
        setattr(EC2Backend, name, _one_after_the_other(guard, getattr(EC2Backend, name)))
    for name, aftermath in _AFTERMATHS:
        setattr(EC2Backend, name, _one_after_the_other(getattr(EC2Backend, name), aftermath))
    # Each request looks for its service among them: 200 folders that would be listed anew.
    services = frozenset(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: services
    for paths, path, answer in _PATHS:
        paths[path] = answer
    for kind, prefix in _TAGGED_KINDS:
        EC2_RESOURCE_TO_PREFIX[kind], EC2_PREFIX_TO_RESOURCE[prefix] = prefix, kind
    # moto's CloudFormation skips types it does not know, never rolls back and re-creates what changed: a
    # CloudFormation of our own takes its place, which calls the services as a client like any other.
    CloudFormationApi.endpoint_url = endpoint_url
    cloudformation_urls.url_paths = {"{0}/$": CloudFormationApi.dispatch}
    invocations.INVOCATIONS.environment = defaults.for_clients(endpoint_url, region)
    invocations.INVOCATIONS.workspace = workspace
    images.prepare(account, region)
