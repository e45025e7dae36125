"""What tasks work with, made from settings at first use in each process."""

import os
from collections.abc import Sequence

from farm.ledger import Ledger
from farm.settings import Settings
from workers.leases import owner_name
from workers.spine import Listener, ListenerFactory, Spine, SpineFactory, named


class Runtime:
    """What tasks work with; ledger connections and spine are made at first use, after the fork."""

    def __init__(
        self,
        settings: Settings,
        *,
        spine: SpineFactory | None = None,
        listeners: Sequence[ListenerFactory] | None = None,
    ) -> None:
        """Factories that are not given are those that the settings name."""
        self.settings = settings
        self._spine_factory = spine
        self._listener_factories = listeners
        self.ledger = Ledger(settings.ledger_url)
        self._pid: int | None = None

    @property
    def owner(self) -> str:
        """This process's name as an owner of leases."""
        self._ready()
        return self._owner

    @property
    def spine(self) -> Spine:
        """The spine that the settings name."""
        self._ready()
        return self._spine

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners that the settings name."""
        self._ready()
        return self._listeners

    def _ready(self) -> None:
        if self._pid == os.getpid():
            return
        self._owner = owner_name()
        worker = self.settings.worker
        build = self._spine_factory or named(worker.spine)
        listeners = self._listener_factories
        if listeners is None:
            listeners = [named(path) for path in worker.listeners]
        self._spine: Spine = build(self.settings, self.ledger)
        self._listeners: tuple[Listener, ...] = tuple(make(self.settings, self.ledger) for make in listeners)
        self._pid = os.getpid()
