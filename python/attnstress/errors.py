"""Errors. Those of the program carry its own sentences and its exit status."""

from __future__ import annotations


class AttnstressError(Exception):
    """Anything that attnstress reports on purpose."""

    status: int = 5


class GateFailed(AttnstressError):
    """A gate of the suite failed, or a proof of `verify` did not hold (exit status 1)."""

    status = 1


class Inconclusive(AttnstressError):
    """Neither passed nor failed (exit status 2)."""

    status = 2


class BadInput(AttnstressError, ValueError):
    """A bad command line, suite, capture or argument (exit status 3)."""

    status = 3


class EnvironmentFault(AttnstressError, OSError):
    """Device, disk, lock, or no program (exit status 4)."""

    status = 4


class InternalError(AttnstressError):
    """A fault of the program itself (exit status 5)."""

    status = 5


class Interrupted(AttnstressError, KeyboardInterrupt):
    """Stopped by a signal; the same call goes on where it stopped (exit status 75)."""

    status = 75


class Unsupported(BadInput):
    """A model or an input that the capture adapter does not understand; nothing was captured."""


BY_STATUS: dict[int, type[AttnstressError]] = {
    c.status: c
    for c in (GateFailed, Inconclusive, BadInput, EnvironmentFault, InternalError, Interrupted)
}
