"""What commands share that ask a hub about a namespace: options, and refusals as errors."""

from typing import TypeVar

import click

from dsf.cli.options import Namespace, cluster_options, options
from optimizer.wire.request_problem import RequestProblem

T = TypeVar("T")

namespace_option = options(
    cluster_options("the hub"),
    click.option(
        "--namespace",
        "-n",
        type=Namespace(),
        default="default",
        show_default=True,
        help="Namespace of the workloads.",
    ),
)


def usable(found: T | RequestProblem) -> T:
    """Return a value; raise ClickException if it is a problem."""
    if isinstance(found, RequestProblem):
        raise click.ClickException(f"{found.title}: {found.detail}")
    return found
