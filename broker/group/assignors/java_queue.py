"""Java's PriorityQueue: which of several equal elements comes first depends on its heap, and assignments on that."""

from __future__ import annotations

from typing import Generic, TypeVar

Item = TypeVar("Item")


class JavaQueue(Generic[Item]):
    def __init__(self) -> None:
        self._heap: list[tuple[float, Item]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, load: float, item: Item) -> None:
        heap = self._heap
        place = len(heap)
        heap.append((load, item))
        while place > 0:
            parent = (place - 1) // 2
            if load >= heap[parent][0]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = (load, item)

    def poll(self) -> Item:
        """Take the least."""
        heap = self._heap
        first = heap[0][1]
        last = heap.pop()
        if not heap:
            return first
        place = 0
        while place < len(heap) // 2:
            child = 2 * place + 1
            if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
                child += 1
            if last[0] <= heap[child][0]:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first
