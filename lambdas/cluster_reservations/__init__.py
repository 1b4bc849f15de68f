"""Makes, changes and cancels capacity reservations in placement groups, which CloudFormation cannot."""
