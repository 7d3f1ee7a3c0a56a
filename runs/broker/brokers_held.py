"""Private brokers that several runs share: started when the first of them needs one, ended with the context."""

from __future__ import annotations

import contextlib
from types import TracebackType

from runs.broker.broker_of_run import standing_node
from runs.process_group import ProcessGroup
from transports.rabbitmq import Node, NodeAddress, NodeSettings, private_node


class Brokers:
    """A context which keeps one private node for each way to set one.

    However we end, the nodes end too, at the end of file of a pipe of ours, and a watchdog removes their folders.
    """

    def __enter__(self) -> Brokers:
        self._held = contextlib.ExitStack()
        self._processes: ProcessGroup | None = None
        self._nodes: dict[NodeSettings, Node] = {}
        self._started = 0
        return self

    def node(self, settings: NodeSettings) -> NodeAddress:
        """The node that is kept, if it lives; else the standing one, if it will do; else a new one, kept too."""
        kept = self._nodes.get(settings)
        if kept is not None and kept.process.poll() is None:
            return kept
        return standing_node(settings) or self._start(settings)

    def _start(self, settings: NodeSettings) -> Node:
        if self._processes is None:
            self._processes = self._held.enter_context(ProcessGroup())
        self._started += 1
        folder, group = self._processes.folder / f"broker-{self._started}", self._processes.id
        self._nodes[settings] = self._held.enter_context(private_node(folder, group, settings))
        return self._nodes[settings]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
