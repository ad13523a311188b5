"""The steps of a rollout, as the record of a plan keeps them."""

from dsf.api.optimization import Optimization
from optimizer.wire.base import GeneratedObject, Name, ResultPart
from optimizer.wire.explanation import EnforcedPolicy
from optimizer.wire.result import ObjectRef
from optimizer.wire.rollout import ReplicaRef, StepActions


class RecordedStep(ResultPart):
    """A step as the record has it: its actions, and what it writes and deletes going forward."""

    actions: StepActions
    write: tuple[GeneratedObject, ...] = ()
    delete: tuple[ObjectRef, ...] = ()


class RolloutPace(ResultPart):
    """How long a step may take, and how long what it enforced must stay compliant, in seconds."""

    progress_deadline_seconds: int = 600
    min_ready_seconds: int = 60


class RolloutPlan(ResultPart):
    """All steps of a rollout, decided when it was planned; the record on the hub carries it.

    `policies`, `replicas` and `objects` are what there was at the start.
    """

    namespace: Name
    optimization: Name
    pace: RolloutPace
    policies: tuple[EnforcedPolicy, ...]
    replicas: tuple[ReplicaRef, ...]
    objects: tuple[GeneratedObject, ...]
    steps: tuple[RecordedStep, ...]

    @property
    def actions(self) -> tuple[StepActions, ...]:
        """What each step does."""
        return tuple(step.actions for step in self.steps)

    @property
    def owner(self) -> Optimization:
        """The optimization whose objects are written."""
        return Optimization(self.namespace, self.optimization)
