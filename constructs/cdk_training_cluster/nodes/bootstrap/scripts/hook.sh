#!/bin/bash
# Tells Auto Scaling that this node is ready; in its log, lines begin with ok, waiting or error. A group with a warm pool
# waits for it twice: before it stops a new node, and before it counts on one that it has started again.
#   hook.sh --set-up  the node has been set up, and is not verified yet: Auto Scaling gets no answer
#   hook.sh           it has been verified
#   hook.sh --boot    it was started again: jobs that are sent there then find the file system mounted
#   hook.sh --bad     it failed its verification: Auto Scaling terminates it and launches another
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# So many nodes a day of a node group are replaced before they enter service. One that would be the next stays, and takes
# no job: a fault that every new node has, such as an image's, would launch nodes for ever.
MAX_REPLACED=3
result=CONTINUE

# Whether this node may be replaced: it takes one of so many places in the cluster's table, each of which is free again
# after a day. The writes are conditional, since nodes that are launched together fail together.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
may_be_replaced() {
  local place said
  if [[ -z ${RUNS_TABLE:-} ]]; then
    log "the cluster has no table in which replaced nodes are counted, so none is replaced"
    return 1
  fi
  for ((place = 1; place <= MAX_REPLACED; place++)); do
    if said=$(take_place "$place" 2>&1); then return 0; fi
    if [[ $said != *ConditionalCheckFailedException* ]]; then
      log "whether more nodes of $NODE_GROUP may be replaced is not known: $said"
      return 1
    fi
  done
  log "$MAX_REPLACED nodes of $NODE_GROUP were replaced within a day before they entered service, and no more are"
  return 1
}

# take_place NUMBER: a node that asks again gets the place that it has.
take_place() {
  local now item request
  now=$(date +%s)
  item='"run":{"S":"replaced-before-service/'$NODE_GROUP'"},"key":{"S":"'$1'"},"node":{"S":"'$instance'"}'
  request='{"TableName":"'$RUNS_TABLE'","Item":{'$item',"expires":{"N":"'$((now + 86400))'"}},'
  request+='"ConditionExpression":"attribute_not_exists(#expires) OR #expires < :now OR #node = :node",'
  request+='"ExpressionAttributeNames":{"#expires":"expires","#node":"node"},'
  request+='"ExpressionAttributeValues":{":now":{"N":"'$now'"},":node":{"S":"'$instance'"}}}'
  aws dynamodb put-item --region "$REGION" --cli-input-json "$request"
}

# Fails as long as there is something to wait for. That no action is to be completed is no answer: Auto Scaling may say
# so of a node that it has not got round to yet. The node's own state tells.
complete() {
  local answer group state
  # The group's name cannot come with the settings: the group refers to the template that holds them.
  answer=$(aws autoscaling describe-auto-scaling-instances --region "$REGION" --instance-ids "$instance" \
    --query 'AutoScalingInstances[].[AutoScalingGroupName,LifecycleState]' --output text) || return 1
  IFS=$'\t' read -r group state <<<"$answer"
  case $state in
    Pending:Wait | Warmed:Pending:Wait)
      if [[ $result == ABANDON ]] && ! may_be_replaced; then
        log "error: $instance of $group is not replaced, and takes no job: $(head -n 1 "$ROOT/run/cdk-training-cluster/drain/verify")"
        return 0
      fi
      aws autoscaling complete-lifecycle-action --region "$REGION" --auto-scaling-group-name "$group" \
        --lifecycle-hook-name "$LAUNCH_HOOK" --instance-id "$instance" --lifecycle-action-result "$result" || return 1
      log "ok: Auto Scaling took the answer $result of $instance of $group"
      ;;
    "" | Pending | Warmed:Pending | Warmed:Stopped)
      log "waiting: Auto Scaling does not wait for $instance yet, whose state is '${state:-unknown}'"
      return 1
      ;;
    *) log "ok: Auto Scaling waits for no answer of $instance, whose state is '$state'" ;;
  esac
}

retry 5 find_instance || die "error: the instance metadata service does not say which instance this is"
# An image may have been made of a node that was set up: the new one has not been, and what its first boot verifies
# meanwhile says nothing of it.
if [[ ${1:-} == --@(boot|bad) && (! -f $SET_UP || $(<"$SET_UP") != "$instance") ]]; then
  log "error: $instance has not been set up to the end, so Auto Scaling gets no answer of it"
  exit 0
fi
if [[ ${1:-} == --boot ]]; then
  if [[ -n $MOUNT_SOURCE ]]; then bash mount.sh || exit 1; fi
elif [[ ${1:-} == --bad ]]; then
  result=ABANDON
elif [[ ${1:-} == --set-up ]]; then
  printf '%s\n' "$instance" | write_file "$SET_UP"
  exit 0
fi
# For close to eight minutes.
retry 14 complete ||
  die "error: Auto Scaling did not take the answer that $instance is ready, and goes on when the hook $LAUNCH_HOOK ends"
