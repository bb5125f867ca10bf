"""attnstress: stress tests of attention routes, from a model to a notebook.

    path = attnstress.capture(model, prompts, "my.h5", tokenizer=tokenizer)
    attnstress.verify(path)
    ds = attnstress.open(attnstress.run("suites/nightly.yaml", "result.h5", capture=[path]))
"""

from __future__ import annotations

from . import prompts
from .capturing import capture
from .errors import (AttnstressError, BadInput, EnvironmentFault, GateFailed, Inconclusive,
                     InternalError, Interrupted, Unsupported)
from .program import call, compare, plan, program, run, verify
from .prompts import Prompt
from .reader import open_result as open
from .spans import TextSpan
from .writer import CaptureWriter, LayerInfo, SampleInfo, Span, Tensor

__version__ = "0.1.0"

__all__ = [
    "AttnstressError", "BadInput", "CaptureWriter", "EnvironmentFault", "GateFailed",
    "Inconclusive", "InternalError", "Interrupted", "LayerInfo", "Prompt", "SampleInfo", "Span",
    "Tensor", "TextSpan", "Unsupported", "call", "capture", "compare", "open", "plan", "program",
    "prompts", "run", "verify",
]
