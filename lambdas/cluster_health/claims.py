"""What of a node's reports its own tags confirm: a report alone has no node rebooted, replaced or put back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from cluster_contract.claims import Claim
from cluster_contract.faults import FaultKind, fault_name, fault_named
from cluster_health.needs import find_need
from cluster_health.node_records import Fault, NodeRecord, Verified
from cluster_health.outcomes import UNCONFIRMED, Context, GroupView


def with_claims(view: GroupView, claims: Mapping[str, Claim], context: Context) -> GroupView:
    """Return what is known of a node group once the tags of its broken nodes were read.

    Args:
        view: What is known of it so far.
        claims: What the tags say, by node.
        context: What decisions rest on.
    """
    nodes, unconfirmed = dict(view.nodes), set[str]()
    may_begin = context.policy.act and not view.traits.own_repair
    for one in view.nodes.keys() & claims.keys():
        node, claim = view.nodes[one], claims[one]
        known = confirmed(node, claim)
        if one in view.record.unfinished:
            # It was confirmed that it is broken: until it is verified, no other boot makes it whole.
            is_open = _is_open(known, claim)
            if is_open:
                own = [fault for fault in node.faults if fault.action.drains]
                known = _with_faults(known, own or list(_faults(node, claim)))
                unconfirmed.add(one)
            nodes[one] = known
        elif may_begin and find_need(one, known, view, context) is not None:
            nodes[one] = known
        elif may_begin and find_need(one, node, view, context) is not None:
            unconfirmed.add(one)
    return replace(view, nodes=nodes, unconfirmed=frozenset(unconfirmed))


def confirmed(node: NodeRecord, claim: Claim) -> NodeRecord:
    """Return what both the reports of a node and its own tags say.

    Of faults that drain a node, and of verifications, the tags decide, and the reports say more about them.

    Args:
        node: What the node has reported.
        claim: What its tags say.
    """
    verified = _verified(node, claim)
    known = replace(
        node,
        drained=node.drained if claim.drained and claim.boot_id == node.boot_id else None,
        verified=verified,
    )
    faults = tuple(_faults(node, claim)) if claim.boot_id == node.faults_boot else ()
    return _with_faults(known, faults)


def _with_faults(node: NodeRecord, draining: Sequence[Fault]) -> NodeRecord:
    """Return what is known of a node with other faults that drain it."""
    faults = (*draining, *(one for one in node.faults if not one.action.drains))
    known = replace(node, faults=faults)
    return replace(known, faulty_since=(node.faulty_since or node.reported) if known.draining_faults else None)


def _is_open(known: NodeRecord, claim: Claim) -> bool:
    """Say whether the faults of a node are of another boot than its tag, in which it was not verified."""
    return claim.boot_id != known.faults_boot and not (known.is_verified and known.boot_id != known.faults_boot)


def from_tags(node: NodeRecord, claim: Claim, now: datetime) -> NodeRecord:
    """Return what is known of a node once its tags were read; they say all of one whose reports do not arrive.

    Args:
        node: What is known of it.
        claim: What they say.
        now: The time.
    """
    if node.reported is not None:
        return node
    faults, verified = tuple(_faults(node, claim)), node.verified
    if verified is None or (verified.boot_id, verified.passed) != (claim.verified_boot, claim.passed):
        verified = _said(claim, now) if claim.verified_boot else None
    known = replace(
        node,
        boot_id=claim.boot_id,
        faults=() if verified is not None and verified.boot_id != claim.boot_id else faults,
        faults_boot=claim.boot_id,
        drained=(node.drained or now) if claim.drained else None,
        verified=verified,
    )
    return replace(known, faulty_since=(node.faulty_since or now) if known.draining_faults else None)


def _faults(node: NodeRecord, claim: Claim) -> Iterator[Fault]:
    """Yield the faults that the tag names, with what the node has reported of each."""
    reported: Mapping[str, Fault] = {fault_name(one.kind, one.code): one for one in node.faults}
    for name in sorted(claim.faults):
        fault = reported.get(name)
        if fault is None or not fault.action.drains:
            try:
                row = fault_named(name)
            except ValueError:
                continue
            fault = Fault(code=row.code, kind=row.kind, action=row.action, sentence=row.meaning)
        if fault.action.drains:
            yield fault


def _verified(node: NodeRecord, claim: Claim) -> Verified | None:
    verified = node.verified
    if verified is None:
        return None
    if not claim.verified_boot:
        return Verified(at=verified.at, passed=False, boot_id="", failed=UNCONFIRMED)
    if (verified.boot_id, verified.passed) != (claim.verified_boot, claim.passed):
        return _said(claim, verified.at)
    named = tuple(one for one in verified.faults if one.code in claim.failed or not one.action.drains)
    return replace(verified, faults=named)


def _said(claim: Claim, at: datetime) -> Verified:
    """Return the verification of which the tag says only the result."""
    failed = sorted(claim.failed)
    rows = [fault_named(fault_name(FaultKind.CHECK, name)) for name in failed]
    faults = tuple(
        Fault(code=row.code, kind=row.kind, action=row.action, sentence=row.meaning)
        for row in rows
        if row.action.drains
    )
    return Verified(at=at, passed=claim.passed, boot_id=claim.verified_boot, faults=faults, failed=", ".join(failed))
