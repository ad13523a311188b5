"""`dsf mig`: the layouts that fit on a GPU, for operators."""

from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import option
from dsf.cli.output import TextTable

if TYPE_CHECKING:
    from optimizer.domain.mig.demand import Demand
    from optimizer.domain.mig.geometry import Geometry
    from optimizer.domain.mig.layouts import GpuInstance


class _Model(click.ParamType["Geometry"]):
    name = "model"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Geometry":
        from dsf.api.untrusted_text import InvalidInput
        from optimizer.domain.mig.geometry import geometry

        found = geometry(value)
        if isinstance(found, InvalidInput):
            self.fail(found.message, param, ctx)
        return found


class _Placed(click.ParamType["GpuInstance"]):
    name = "PROFILE@START"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "GpuInstance":
        from optimizer.domain.mig.layouts import GpuInstance

        profile, _, start = value.partition("@")
        if not start.isdecimal():
            self.fail(f"{value!r} is not of the form 1g.10gb@0", param, ctx)
        return GpuInstance(profile, int(start))


class _Wanted(click.ParamType[tuple[str, int, int, float]]):
    name = "demand"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int, int, float]:
        device, _, rest = value.partition("=")
        amounts, _, worth = rest.partition(":")
        amount, _, times = amounts.partition("x")
        try:
            found = device, int(amount), int(times or 1), float(worth or 1)
        except ValueError:
            self.fail(f"{value!r} is not of the form 3g.40gb=2, 3g.40gb=2x5:60", param, ctx)
        if not device or min(found[1:]) <= 0 or found[1] * found[2] > 10_000:  # noqa: PLR2004
            self.fail(
                f"{value!r}: amounts and values must be above 0, and AMOUNT x TIMES at most 10000",
                param,
                ctx,
            )
        return found


@click.group()
def mig() -> None:
    """Show how MIG can divide GPUs, and which layout serves a demand best."""


@mig.command()
def models() -> None:
    """List the GPU models whose geometry is known."""
    from optimizer.domain.mig.geometry import GEOMETRIES

    rows = [
        (
            item.model,
            f"{item.compute_slices}+{item.memory_slices}",
            " ".join(profile.name for profile in item.profiles),
            "inferred" if item.inferred else "published",
            " ".join(item.products),
        )
        for item in GEOMETRIES
    ]
    click.echo(TextTable(("model", "compute+memory", "profiles", "starts", "gpu.product"), rows))


@mig.command()
@click.argument("model", type=_Model())
@option(
    "--held",
    type=_Placed(),
    multiple=True,
    help="A GPU instance that stays, with its first memory slice (nvidia-smi mig -lgi);"
    " repeatable.",
)
@option("--media", is_flag=True, help="Include profiles with media engines (+me).")
@option("--all", "every", is_flag=True, help="Include layouts to which an instance can be added.")
def layouts(model: "Geometry", held: tuple["GpuInstance", ...], media: bool, every: bool) -> None:
    """Show the layouts of an empty MODEL, or those that keep the instances --held.

    The column AT shows the first memory slice of each instance, for the least fragmented layout.
    """
    from optimizer.domain.mig.layouts import (
        conflict,
        distinct_profile_counts,
        layouts,
        least_fragmented_layout,
        maximal_profile_counts,
    )

    why = conflict(model, held)
    if why:
        raise click.ClickException(f"--held: {why}")
    kept = tuple(sorted(held, key=lambda item: item.start))
    among = frozenset(item.name for item in model.profiles if media or not item.media)
    shapes = {item.name: item for item in model.profiles}
    rows = []
    for counts in (distinct_profile_counts if every else maximal_profile_counts)(
        model, kept, among
    ):
        layout = least_fragmented_layout(model, counts, kept) or ()
        rows.append(
            (
                _spelt(counts),
                str(sum(shapes[name].compute_slices * amount for name, amount in counts)),
                str(sum(shapes[name].memory_slices * amount for name, amount in counts)),
                " ".join(f"{item.profile}@{item.start}" for item in layout) or "-",
            )
        )
    legal = sum(1 for _ in layouts(model, kept, among))
    rows.sort(key=lambda row: (-int(row[1]), -int(row[2]), row[0]))
    click.echo(TextTable(("instances", "compute", "memory", "at"), rows))
    click.echo(f"{len(rows)} shown; {legal} legal layouts in all, positions counted")


@mig.command()
@click.argument("model", type=_Model())
@option(
    "--want",
    type=_Wanted(),
    metavar="DEVICE=AMOUNT[xTIMES][:VALUE]",
    multiple=True,
    required=True,
    help="A workload that asks for AMOUNT instances of DEVICE (a profile, or all for a GPU without"
    " MIG), TIMES such workloads, each worth VALUE; repeatable.",
)
@option("--count", type=click.IntRange(1, 64), default=1, help="GPUs.")
@option(
    "--output",
    "-o",
    type=click.Choice(["table", "mig-parted"]),
    default="table",
    help="mig-parted: the configuration file with the layout, for nvidia-mig-parted.",
)
def explain(
    model: "Geometry", want: tuple[tuple[str, int, int, float], ...], count: int, output: str
) -> None:
    """Show which layout serves a demand best.

    There are --count idle GPUs of MODEL. The output states the share of the demand that is served.
    """
    from optimizer.candidates.pool_candidates import best_configuration
    from optimizer.domain.mig.gpu_pools import Gpu, ReconfigurationRules
    from optimizer.domain.mig.policy_spec import config_file, config_name, node_config

    demand = _demand(model, want)
    point, bound = best_configuration((Gpu(model),) * count, demand, ReconfigurationRules(most=400))
    if point is None or not any(point.supply):
        raise click.ClickException(f"no layout of {count} {model.model} serves any of this")
    gpus = sorted((item.instances for item in point.patterns), key=lambda item: item or ())
    if output == "mig-parted":
        click.echo(config_file({config_name(gpus): node_config(gpus)}), nl=False)
        return
    rows = [(str(gpus.count(item)), _spelt(item)) for item in dict.fromkeys(gpus)]
    click.echo(TextTable(("gpus", "layout"), rows))
    value, possible = demand.value(point.supply), demand.value(demand.caps)
    click.echo(f"Configuration {config_name(gpus)}: worth {value:g} of {possible:g} asked for.")
    click.echo(f"No layout is worth more than {min(possible, value + bound):g}.")


def _demand(model: "Geometry", want: tuple[tuple[str, int, int, float], ...]) -> "Demand":
    from optimizer.domain.mig.demand import Demand, DeviceRequest
    from optimizer.domain.nodes import WHOLE_GPU

    requests: dict[str, list[DeviceRequest]] = {}
    for name, amount, times, value in want:
        profile = model.profile(name)
        if profile is None and name != WHOLE_GPU:
            have = ", ".join(item.name for item in model.profiles)
            raise click.ClickException(
                f"--want: {model.model} has no profile {name!r}; it has {have}, and {WHOLE_GPU}"
            )
        device = profile.device if profile else WHOLE_GPU
        requests.setdefault(device, []).extend([DeviceRequest(amount, value)] * times)
    return Demand.of(requests)


def _spelt(instances: tuple[tuple[str, int], ...] | None) -> str:
    if instances is None:
        return "MIG off"
    return " + ".join(f"{amount}x {name}" for name, amount in instances) or "none"
