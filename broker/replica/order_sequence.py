"""Recognizes an order of the controller that later ones have overtaken.

A controller that gets no answer repeats an order on a new connection, and goes on to the next ones. The first attempt
may arrive after all of them: a broker that stood still finds both connections readable, and may read the new one first.
Carried out then, it would bring back old metadata for good, or set aside partitions that were created since.

The correlation ids of a controller's orders to one registration of a broker rise across connections, because they are
counted for the channel. Those of Apache Kafka do so too.
"""

from __future__ import annotations

from typing import Final, Protocol

_NO_EPOCH: Final = -1
_IDS: Final = 1 << 31  # correlation ids start again after that many


class Order(Protocol):
    controller_epoch: int
    broker_epoch: int


class OrderSequence:
    __slots__ = ("_last_id", "_line")

    def __init__(self) -> None:
        self._line = (_NO_EPOCH, _NO_EPOCH)  # the controller's epoch, and that of this broker's registration
        self._last_id = 0

    def is_overtaken(self, order: Order, correlation_id: int) -> bool:
        """Whether to refuse an order. Orders that do not say which registration they are for are not in sequence."""
        line = order.controller_epoch, order.broker_epoch
        if order.broker_epoch == _NO_EPOCH or order.controller_epoch < self._line[0]:
            return False  # a deposed controller gets an error of its own
        if line < self._line:
            return True
        if line == self._line and (correlation_id - self._last_id) % _IDS >= _IDS // 2:
            return True
        self._line = line
        self._last_id = correlation_id
        return False
