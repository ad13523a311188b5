"""The responses about PlacementOptimizations: whether each is fine, and why nothing moves."""

from pydantic import Field

from optimizer.wire.base import Name, ResultPart, Sentence, Text
from optimizer.wire.placement_optimization import PlacementOptimizationStatus


class KeptOptimization(ResultPart):
    """A PlacementOptimization, and what its status means."""

    namespace: Name
    name: Name
    mode: Name = Field(description="Plan, Approve or Apply.")
    fine: bool = Field(description="Nobody has to do anything: all is as planned, or will be.")
    reason: Name = Field(description="Of the first condition that is not True, else of Applied.")
    message: Text = Field(description="What is wrong, or why what is on offer is not taken yet.")
    waiting: Name = Field(description="Digest of the plan that waits for an approval; or empty.")
    approved: bool = Field(description="That plan was approved, and is applied at the next look.")
    effect: Sentence = Field(description="What the last plan changes and gains; or empty.")
    move_rule: Sentence = Field(description="What a move for a better score has to gain.")
    status: PlacementOptimizationStatus = Field(description="As it is on the hub.")


class KeptList(ResultPart):
    """The PlacementOptimizations of a namespace."""

    namespace: Name
    items: tuple[KeptOptimization, ...]
