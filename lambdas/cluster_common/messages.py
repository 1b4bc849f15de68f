"""What SNS takes as a message's subject."""

# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html: ASCII, no line breaks, less than 100
# characters.
_SUBJECT_LENGTH = 99


def subject(text: str) -> str:
    """Turn text into a line that SNS takes as a subject: other characters become `?`, too much is cut."""
    return " ".join(text.split()).encode("ascii", "replace").decode("ascii")[:_SUBJECT_LENGTH]
