"""The stories by the name that `dsf demo --story` takes."""

from collections.abc import Mapping

from dsf.sim.stories.airan import AIRAN
from dsf.sim.stories.inference import INFERENCE
from dsf.sim.stories.story import Story

STORIES: Mapping[str, Story] = {"inference": INFERENCE, "airan": AIRAN}
