"""The form of a region's name. It names every word, so that a misspelled region is refused before AWS is asked."""

REGION = (
    r"(?:af|ap|ca|cn|eu|eusc|il|me|mx|sa|us)(?:-gov|-iso[a-z]?|-de)?"
    r"-(?:central|east|north|northeast|northwest|south|southeast|southwest|west)-[0-9]+"
)
"""The name of a region: us-east-1, us-gov-west-1, ap-southeast-7, eusc-de-east-1.

Source: https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html
"""
