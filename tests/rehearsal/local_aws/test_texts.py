"""Texts that AWS refuses: each with the code of the service, and the longest or strangest legal one beside it."""

import pytest

from local_aws_scene import Stacks, imported


@pytest.mark.parametrize(
    ("description", "refused"),
    [("the file system's servers", True), ("a" * 256, True), ("a" * 255, False), ("(a) #1, [b] = {c}; *$!", False)],
)
def test_a_rule_has_a_description_that_ec2_takes(stacks: Stacks, description: str, refused: bool) -> None:
    rule = {"CidrIp": "10.0.0.0/8", "IpProtocol": "-1", "Description": description}
    group = {"GroupDescription": "x", "VpcId": imported("Vpc"), "SecurityGroupIngress": [rule]}
    name = stacks.create({"Resources": {"Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": group}}})
    assert stacks.status(name) == ("ROLLBACK_COMPLETE" if refused else "CREATE_COMPLETE")
    if refused:
        assert "Invalid rule description" in stacks.reasons(name)["Group"]
