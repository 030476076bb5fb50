"""What must hold of everything that clients saw, whatever happened. In the manner of Jepsen's test for Kafka.

lost write            acknowledged by all in-sync replicas, and not there at the end
refused write         refused for good, and there all the same
duplicate             a value of an idempotent producer at two offsets
inconsistent offsets  two values at one offset
non-monotonic poll    a reader saw a later offset before an earlier one
skipped               a reader went past a value that was there
non-monotonic send    of two values that a producer sent one after the other, the first has the later offset
aborted read          a reader of committed records saw a value of a transaction that was not committed
torn transaction      some of a transaction's values are visible and others are not
commit went back      a group was told an offset that is older than one that was acknowledged before
two owners            a member got a partition that another member of its group had not let go of
cut                   a reader was told that what it has read is gone
uncommitted read      a reader got a record from beyond the high watermark that the same answer names
sent astray           a leader sent a reader to a replica that it did not count as in sync
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.simulation.history import Commit, History, Key, Outcome, Ownership, Poll, Send, Transaction


class Anomaly(NamedTuple):
    kind: str
    what: str


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong. `history.final` must have every partition that was written to and not deleted."""
    return list(_Checker(history).anomalies())


class _Checker:
    def __init__(self, history: History) -> None:
        self.history = history
        self.sends = [send for send in history.sends if history.is_promised(send.key)]
        self.polls = [poll for poll in history.polls if history.is_promised(poll.key)]
        self.send_of: dict[str, Send] = {value: send for send in history.sends for value in send.values}
        self.records = {key: records for key, records in history.final.items() if history.is_promised(key)}
        self.final: dict[Key, dict[str, int]] = {
            key: {value: offset for offset, value in reversed(records)} for key, records in self.records.items()
        }

    def anomalies(self) -> Iterator[Anomaly]:
        yield from self._lost_and_refused()
        yield from self._offsets()
        yield from self._polls()
        yield from self._skipped()
        yield from self._send_order()
        yield from self._transactions()
        yield from self._commits()
        yield from self._two_owners()
        yield from self._sent_elsewhere()
        for cut in self.history.truncations:
            if self.history.is_promised(cut.key):
                yield Anomaly(
                    "cut",
                    f"{cut.client} had read {_name(cut.key)} up to {cut.position}, and it ends at {cut.end_offset}",
                )

    # --- writes ---

    def _lost_and_refused(self) -> Iterator[Anomaly]:
        for send in self.sends:
            final = self.final.get(send.key)
            if send.outcome is Outcome.OK and send.acks == -1 and _is_committed(send):
                if final is None:
                    yield Anomaly(
                        "lost write", f"{_name(send.key)} cannot be read, and {send.values} were acknowledged"
                    )
                    continue
                missing = [value for value in send.values if value not in final]
                if missing:
                    yield Anomaly(
                        "lost write",
                        f"{missing} of {send.client} in {_name(send.key)}, acknowledged at {send.ended:.3f} s"
                        f" with offset {send.offset}",
                    )
            elif send.outcome is Outcome.FAILED and final is not None:
                there = [value for value in send.values if value in final]
                if there:
                    yield Anomaly("refused write", f"{there} of {send.client} in {_name(send.key)}")

    def _offsets(self) -> Iterator[Anomaly]:
        """One value at each offset, and one offset for each value that was sent idempotently."""
        at: dict[tuple[Key, int], str] = {}
        of: dict[str, tuple[Key, int]] = {}
        told: dict[tuple[str, object], None] = {}
        for key, offset, value, where in self._seen():
            known = at.setdefault((key, offset), value)
            if known != value and ("offset", (key, offset)) not in told:
                told["offset", (key, offset)] = None
                yield Anomaly("inconsistent offsets", f"{_name(key)} has {known} and {value} at {offset} ({where})")
            send = self.send_of.get(value)
            if send is None:
                if ("value", value) not in told:
                    told["value", value] = None
                    yield Anomaly("inconsistent offsets", f"{value!r} in {_name(key)} at {offset} was never sent")
                continue
            place = of.setdefault(value, (key, offset))
            if place != (key, offset) and send.idempotent and ("value", value) not in told:
                told["value", value] = None
                yield Anomaly(
                    "duplicate", f"{value} is in {_name(place[0])} at {place[1]} and in {_name(key)} at {offset}"
                )

    def _seen(self) -> Iterator[tuple[Key, int, str, str]]:
        for key, records in self.records.items():
            for offset, value in records:
                yield key, offset, value, "at the end"
        for poll in self.polls:
            for offset, value in poll.records:
                yield poll.key, offset, value, f"{poll.client} at {poll.at:.3f} s"
        for send in self.sends:
            if send.outcome is Outcome.OK and send.acks == -1 and send.offset >= 0:
                for number, value in enumerate(send.values):
                    yield send.key, send.offset + number, value, f"acknowledged to {send.client}"

    def _send_order(self) -> Iterator[Anomaly]:
        last: dict[tuple[str, Key], Send] = {}
        for send in self.sends:
            if send.outcome is not Outcome.OK or send.offset < 0 or send.acks != -1:
                continue
            before = last.get((send.client, send.key))
            last[send.client, send.key] = send
            if before is None or before.offset < send.offset:
                continue
            if (before.idempotent and before.incarnation == send.incarnation) or before.ended <= send.began:
                yield Anomaly(
                    "non-monotonic send",
                    f"{send.client} sent {before.values} and then {send.values} to {_name(send.key)},"
                    f" which are at {before.offset} and {send.offset}",
                )

    # --- reads ---

    def _polls(self) -> Iterator[Anomaly]:
        last: dict[tuple[str, int, Key], int] = {}
        for poll in self.polls:
            reader = (poll.client, poll.assignment, poll.key)
            before = last.get(reader, -1)
            for offset, value in poll.records:
                if offset <= before:
                    yield Anomaly(
                        "non-monotonic poll",
                        f"{poll.client} saw {value} at {offset} of {_name(poll.key)} after {before} ({poll.at:.3f} s)",
                    )
                before = offset
            last[reader] = before
            if poll.records and 0 <= poll.high_watermark <= poll.records[-1][0]:
                yield Anomaly(
                    "uncommitted read",
                    f"{poll.client} saw {poll.records[-1][1]} at {poll.records[-1][0]} of {_name(poll.key)} at"
                    f" {poll.at:.3f} s, and was told that everything below {poll.high_watermark} is committed",
                )
            if poll.committed_only:
                yield from self._aborted(poll)

    def _aborted(self, poll: Poll) -> Iterator[Anomaly]:
        for offset, value in poll.records:
            send = self.send_of.get(value)
            if send is not None and send.transaction is not None and send.transaction.outcome == "aborted":
                yield Anomaly(
                    "aborted read",
                    f"{poll.client} saw {value} of {send.transaction.name} at {offset} of {_name(poll.key)}",
                )

    def _skipped(self) -> Iterator[Anomaly]:
        ordered = {key: sorted(records) for key, records in self.records.items()}
        for poll in self.polls:
            records = ordered.get(poll.key)
            if not records:
                continue
            seen = {offset for offset, _ in poll.records}
            for offset, value in _between(records, poll.position, poll.next_position):
                if offset not in seen:
                    yield Anomaly(
                        "skipped",
                        f"{poll.client} read {_name(poll.key)} from {poll.position} to {poll.next_position} at"
                        f" {poll.at:.3f} s and did not see {value} at {offset}",
                    )
                    break

    def _sent_elsewhere(self) -> Iterator[Anomaly]:
        for sent in self.history.sent_elsewhere:
            believed = self.history.isrs.get((sent.leader, sent.key), [])
            # What it believed when it answered: at some time between question and answer.
            before = [isr for at, isr in believed if at < sent.began][-1:]
            during = [isr for at, isr in believed if sent.began <= at <= sent.ended]
            if believed and not any(sent.replica in isr for isr in (*before, *during)):
                yield Anomaly(
                    "sent astray",
                    f"{sent.client} was sent to broker {sent.replica} to read {_name(sent.key)} by broker {sent.leader}"
                    f" at {sent.ended:.3f} s, which counted {before or during} as in sync",
                )

    # --- transactions ---

    def _transactions(self) -> Iterator[Anomaly]:
        by_transaction: dict[Transaction, list[Send]] = {}
        for send in self.sends:
            if send.transaction is not None:
                by_transaction.setdefault(send.transaction, []).append(send)
        for transaction, sends in by_transaction.items():
            visible, hidden = [], []
            for send in sends:
                for value in send.values:
                    there = value in self.final.get(send.key, ())
                    if there:
                        visible.append(value)
                    elif send.outcome is Outcome.OK:
                        hidden.append(value)
            if transaction.outcome == "aborted" and visible:
                yield Anomaly("aborted read", f"{visible} of transaction {transaction.name} at the end")
            elif visible and hidden:
                yield Anomaly("torn transaction", f"{transaction.name}: {visible} are there, {hidden} are not")

    # --- committed offsets ---

    def _commits(self) -> Iterator[Anomaly]:
        commits: dict[tuple[str, Key], list[Commit]] = {}
        for commit in self.history.commits:
            commits.setdefault((commit.group, commit.key), []).append(commit)
        for seen in self.history.commits_seen:
            if not self.history.is_promised(seen.key):
                continue
            made = commits.get((seen.group, seen.key), ())
            least = max((each.offset for each in made if _is_done(each) and each.ended < seen.began), default=-1)
            if seen.offset >= least:
                continue
            # One that was never answered may have arrived late, behind a newer one.
            if any(each.offset == seen.offset and not _is_done(each) and each.began < seen.ended for each in made):
                continue
            yield Anomaly(
                "commit went back",
                f"{seen.client} was told {seen.offset} for {_name(seen.key)} of group {seen.group} at"
                f" {seen.ended:.3f} s, and {least} had been acknowledged",
            )

    def _two_owners(self) -> Iterator[Anomaly]:
        """A member that is fenced may go on for a while. One that lets go has the partition until then."""
        owners: dict[tuple[str, Key], list[Ownership]] = {}
        for each in sorted(self.history.ownerships, key=lambda each: each.began):
            for other in owners.setdefault((each.group, each.key), []):
                if other.client != each.client and each.began < other.ended and not other.fenced:
                    yield Anomaly(
                        "two owners",
                        f"{each.client} got {_name(each.key)} at {each.began:.3f} s, and {other.client} had it from"
                        f" {other.began:.3f} to {other.ended:.3f} s",
                    )
            owners[each.group, each.key].append(each)


def _is_done(commit: Commit) -> bool:
    if commit.transaction is not None:
        return commit.transaction.outcome == "committed"
    return commit.outcome is Outcome.OK


def _is_committed(send: Send) -> bool:
    return send.transaction is None or send.transaction.outcome == "committed"


def _between(records: list[tuple[int, str]], start: int, end: int) -> Iterable[tuple[int, str]]:
    from bisect import bisect_left

    return records[bisect_left(records, (start, "")) : bisect_left(records, (end, ""))]


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"
