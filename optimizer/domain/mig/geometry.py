"""What each MIG-capable GPU can be divided into, as data.

A GPU has memory slices and compute slices; an instance takes a run of memory slices that begins
at one of its profile's starts. Sources:
- names, slices, most instances: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (section
  "Supported MIG Profiles") and https://github.com/NVIDIA/mig-parted
  deployments/systemd/config-default.yaml
- starts: the transcripts of `nvidia-smi mig -lgipp` in the MIG user guide (A100) and of operators
  (H100-80GB, H100-94GB), and go-nvml's a30.go
- `inferred` geometries have no published transcript of their starts: they are those of the other
  GPUs with 8 memory and 7 compute slices, which their profile table fits.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dsf.api.untrusted_text import InvalidInput

MEDIA = "+me"


@dataclass(frozen=True, slots=True)
class Profile:
    """A size of GPU instance, in slices; `starts` are memory slices.

    `max_instances`: how many of it a GPU holds. `profile_id`: that of nvidia-smi.
    """

    name: str
    profile_id: int
    compute_slices: int
    memory_slices: int
    max_instances: int
    starts: tuple[int, ...]

    @property
    def media(self) -> bool:
        """Whether it takes the media engines; a GPU has one set of them."""
        return self.name.endswith(MEDIA)

    @property
    def device(self) -> str:
        """Its name as a Kubernetes resource or label value spells it: `1g.10gb.me`."""
        return self.name.replace("+", ".")

    def mask(self, start: int) -> int:
        """Return the memory slices of an instance that begins at `start`, as bits."""
        return (1 << self.memory_slices) - 1 << start


@dataclass(frozen=True, slots=True)
class Geometry:
    """A GPU model; `products` are its `nvidia.com/gpu.product` labels, without `NVIDIA-`."""

    model: str
    compute_slices: int
    memory_slices: int
    profiles: tuple[Profile, ...]
    products: tuple[str, ...] = ()
    inferred: bool = False

    def profile(self, name: str) -> Profile | None:
        """Return a profile by its name, `1g.10gb+me`, or its device, `1g.10gb.me`."""
        return next((item for item in self.profiles if name in {item.name, item.device}), None)


def _of_seven(names: str) -> tuple[Profile, ...]:
    """The profiles of the GPUs with 8 memory and 7 compute slices, smallest first."""
    shapes = (
        (19, 1, 1, 7, (0, 1, 2, 3, 4, 5, 6)),
        (20, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        (15, 1, 2, 4, (0, 2, 4, 6)),
        (14, 2, 2, 3, (0, 2, 4)),
        (9, 3, 4, 2, (0, 4)),
        (5, 4, 4, 1, (0,)),
        (0, 7, 8, 1, (0,)),
    )
    return tuple(Profile(name, *shape) for name, shape in zip(names.split(), shapes, strict=True))


_A30 = (
    Profile("1g.6gb", 14, 1, 1, 4, (0, 1, 2, 3)),
    Profile("1g.6gb+me", 21, 1, 1, 1, (0, 1, 2, 3)),
    Profile("2g.12gb", 5, 2, 2, 2, (0, 2)),
    Profile("2g.12gb+me", 6, 2, 2, 1, (0, 2)),
    Profile("4g.24gb", 0, 4, 4, 1, (0,)),
)

GEOMETRIES = (
    Geometry("A30-24GB", 4, 4, _A30, ("A30",)),
    Geometry(
        "A100-40GB",
        7,
        8,
        _of_seven("1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("A100-SXM4-40GB", "A100-PCIE-40GB"),
    ),
    Geometry(
        "A100-80GB",
        7,
        8,
        _of_seven("1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"),
    ),
    Geometry(
        "H100-80GB",
        7,
        8,
        _of_seven("1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("H100-80GB-HBM3", "H100-PCIe"),
    ),
    Geometry(
        "H100-94GB",
        7,
        8,
        _of_seven("1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        ("H100-NVL",),
    ),
    Geometry(
        "H100-96GB",
        7,
        8,
        _of_seven("1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        ("GH200-480GB", "H20"),
        inferred=True,
    ),
    Geometry(
        "H200-141GB",
        7,
        8,
        _of_seven("1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        ("H200", "H200-NVL"),
        inferred=True,
    ),
    Geometry(
        "B200-180GB",
        7,
        8,
        _of_seven("1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        ("B200",),
        inferred=True,
    ),
)

MODELS = tuple(geometry.model for geometry in GEOMETRIES)


def geometry(model: str, known: Iterable[Geometry] = GEOMETRIES) -> Geometry | InvalidInput:
    """Return the geometry of a model or of a `nvidia.com/gpu.product`; letter case is no matter."""
    wanted = model.upper().removeprefix("NVIDIA-")
    for item in known:
        if wanted in {name.upper() for name in (item.model, *item.products)}:
            return item
    message = f"no MIG geometry is known for GPU {model!r}; known are {', '.join(MODELS)}"
    return InvalidInput("UnknownGpuModel", message)
