"""Run the local AWS until standard input closes: `python -m local_aws`.

One line of JSON on standard output names the port once the server listens; everything else goes to
standard error.
"""

from local_aws.server import main

main()
