"""Write a man page for each command of `dsf` into a folder; needs click-man.

python .ci/man_pages.py FOLDER
"""

import os
import sys
from datetime import UTC, datetime

import click
from click_man.core import write_man_pages

from dsf import __version__
from dsf.cli.root import COMMANDS, root


def main(folder: str) -> None:
    """Write the pages; their date is SOURCE_DATE_EPOCH, so that the same source gives the same."""
    context = click.Context(root, info_name="dsf")
    for name in COMMANDS:
        command = root.get_command(context, name)
        if command is not None:
            root.add_command(command, name)
    made = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    write_man_pages(
        "dsf", root, version=__version__, target_dir=folder, date=made.date().isoformat()
    )


if __name__ == "__main__":
    main(sys.argv[1])
