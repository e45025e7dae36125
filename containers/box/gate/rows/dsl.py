"""Keeps the source language out of a process in which the target implementation runs; says who asked for it."""

import builtins
import sys
from collections.abc import Callable, Collection
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


class SourceLaunch(RuntimeError):
    """The target implementation launched a kernel of the source language."""


class Watch(MetaPathFinder):
    """Refuses the import of a module and its submodules, or lets it pass and refuses its launches.

    A repository may import the source language for its other operators; then launches are refused while
    `inside` says that the op's target implementation runs, and counted elsewhere.
    """

    def __init__(
        self, dsl: str, *, refuse: bool, candidate: Collection[str], source: str, inside: Callable[[], bool]
    ) -> None:
        self._dsl = dsl
        self._refuse = refuse
        self._candidate = frozenset(candidate)
        self._source = source
        self._inside = inside
        self._armed: Any = None
        self._asked: set[str] = set()
        self.launches_inside = 0
        self.launches_outside = 0

    def install(self) -> None:
        """Watch imports from now on."""
        sys.meta_path.insert(0, self)
        original = builtins.__import__

        def watched(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> ModuleType:
            wanted = level == 0 and self._names_it(name, fromlist or ())
            if wanted and globals is not None and globals.get("__file__") in self._candidate:
                self._asked.add(globals["__file__"])
            module = original(name, globals, locals, fromlist, level)
            if wanted:
                self.arm()
            return module

        builtins.__import__ = watched

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Refuse the module, or leave it to the other finders."""
        if not self._is_it(fullname):
            return
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in self._candidate:
                self._asked.add(frame.f_code.co_filename)
            frame = frame.f_back  # type: ignore[assignment]
        if self._refuse:
            message = f"{fullname} is not to be had where the target backend is judged"
            raise ModuleNotFoundError(message, name=fullname)

    def arm(self) -> None:
        """Put a guard before the language's `launch`, wherever a module holds it; once it is imported."""
        module = sys.modules.get(self._dsl)
        original = getattr(module, "launch", None)
        if original is None or original is self._armed:
            return

        def launch(*args: Any, **kwargs: Any) -> Any:
            if self._inside():
                self.launches_inside += 1
                raise SourceLaunch(f"{self._dsl}.launch was called by the target implementation")
            self.launches_outside += 1
            return original(*args, **kwargs)

        self._armed = launch
        for holder in list(sys.modules.values()):
            for name in [name for name, value in vars(holder).items() if value is original] if holder else ():
                setattr(holder, name, launch)

    def facts(self) -> dict[str, str]:
        """What was seen, for `Collected.process`."""
        asked, held = sorted(Path(file).name for file in self._asked), self._held()
        told = {
            f"imported by {', '.join(asked)}": bool(asked),
            f"held by {', '.join(held)}": bool(held),
            f"launched {self.launches_inside} times by the target implementation": bool(self.launches_inside),
            "imported though refused": self._refuse and self._dsl in sys.modules,
        }
        return {
            "source_dsl": ", ".join(text for text, holds in told.items() if holds),
            "source_dsl_import": "refused" if self._refuse else "watched",
            "source_dsl_launches_elsewhere": str(self.launches_outside),
        }

    def _held(self) -> list[str]:
        """Names in the candidate's modules that stand for the language or the source implementation."""
        found = []
        for name, module in list(sys.modules.items()):
            if module is not None and getattr(module, "__file__", None) in self._candidate:
                found += [f"{name}.{key}" for key, value in list(vars(module).items()) if self._belongs(value)]
        return sorted(found)

    def _belongs(self, value: Any) -> bool:
        if isinstance(value, ModuleType):
            return self._is_it(value.__name__) or value.__name__ == self._source
        homes = (getattr(value, "__module__", None), type(value).__module__)
        return any(isinstance(home, str) and (self._is_it(home) or home == self._source) for home in homes)

    def _names_it(self, name: str, fromlist: Collection[str]) -> bool:
        return self._is_it(name) or any(self._is_it(f"{name}.{item}") for item in fromlist)

    def _is_it(self, name: str) -> bool:
        return name == self._dsl or name.startswith(f"{self._dsl}.")
