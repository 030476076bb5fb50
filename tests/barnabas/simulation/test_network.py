"""barnabas.simulation.network: streams, and what can happen to them."""

import errno

import pytest

from barnabas.simulation.loop import Scheduler
from barnabas.simulation.network import Fabric, SimulatedNetwork


class Hosts:
    def __init__(self):
        self.scheduler = Scheduler(1)
        self.fabric = Fabric(self.scheduler)
        self.loops = {}
        self.arrived = bytearray()
        self.ended = []

    def process(self, host):
        loop = self.loops[host] = self.scheduler.process(host)
        return SimulatedNetwork(self.fabric, loop, host)

    def do(self, host, work):
        task = self.loops[host].create_task(work)
        self.scheduler.run(task.done)
        return task.result()

    def wait(self, seconds=1.0):
        self.scheduler.run(end=self.scheduler.now + seconds)

    def connect(self):
        """Two ends of a connection from a to b."""
        a, b = self.process("a"), self.process("b")
        listener = b.listen("", 9, 5)
        near = self.do("a", a.connect("b", 9))
        self.wait()
        far, address = listener.accept()
        assert address == near.getsockname()
        return near, far

    def read(self, host, sock):
        """Have everything that arrives at an end collected, until it ends."""

        def on_readable():
            buffer = bytearray(1000)
            try:
                count = sock.recv_into(memoryview(buffer))
            except OSError as error:
                self.ended.append(error.errno)
                self.loops[host].remove_reader(sock)
                return
            if not count:
                self.ended.append(0)
                self.loops[host].remove_reader(sock)
            self.arrived += buffer[:count]

        self.loops[host].add_reader(sock, on_readable)


@pytest.fixture
def hosts():
    return Hosts()


def test_bytes_arrive_in_order_and_then_the_end(hosts):
    near, far = hosts.connect()
    hosts.read("b", far)
    for number in range(100):
        near.send(b"%d," % number)
        hosts.wait(0.0001)
    near.close()
    hosts.wait()
    assert hosts.arrived == b"".join(b"%d," % number for number in range(100))
    assert hosts.ended == [0]


def test_nobody_listens(hosts):
    a = hosts.process("a")
    hosts.process("b")
    with pytest.raises(OSError, match="refused"):
        hosts.do("a", a.connect("b", 9))


def test_a_machine_without_power_does_not_answer(hosts):
    a, b = hosts.process("a"), hosts.process("b")
    b.listen("", 9, 5)
    hosts.fabric.power_failed(hosts.loops["b"], "b")
    with pytest.raises(OSError, match="timed out"):
        hosts.do("a", a.connect("b", 9))
    assert hosts.scheduler.now > 5


def test_a_cut_holds_back_until_it_is_mended(hosts):
    near, far = hosts.connect()
    hosts.read("b", far)
    hosts.fabric.cut("a", "b")
    near.send(b"one")
    hosts.wait(5)
    near.send(b"two")
    near.close()
    hosts.wait(5)
    assert not hosts.arrived
    hosts.fabric.mend("a", "b")
    hosts.wait()
    assert hosts.arrived == b"onetwo"
    assert hosts.ended == [0]


def test_a_cut_has_a_direction(hosts):
    near, far = hosts.connect()
    hosts.read("b", far)
    hosts.fabric.cut("b", "a")
    near.send(b"there")
    far.send(b"back")
    hosts.wait()
    assert hosts.arrived == b"there"
    with pytest.raises(BlockingIOError):
        near.recv(10)


def test_a_connection_waits_for_a_mended_link(hosts):
    a, b = hosts.process("a"), hosts.process("b")
    b.listen("", 9, 5)
    hosts.fabric.cut("a", "b")
    hosts.loops["b"].call_later(2, hosts.fabric.mend, "a", "b")
    hosts.do("a", a.connect("b", 9))
    assert 2 < hosts.scheduler.now < 5


def test_a_process_that_dies_ends_its_connections(hosts):
    near, far = hosts.connect()
    hosts.read("a", near)
    far.send(b"last words")
    hosts.loops["b"].kill()
    hosts.fabric.process_died(hosts.loops["b"])
    hosts.wait()
    assert hosts.arrived == b"last words"
    assert hosts.ended == [0]
    near.send(b"hello?")
    hosts.wait()
    with pytest.raises(OSError, match="reset"):
        near.send(b"hello?")


def test_a_machine_that_loses_power_is_missed_when_it_is_back(hosts):
    near, far = hosts.connect()
    hosts.read("a", near)
    far.send(b"never sent")
    hosts.loops["b"].kill()
    hosts.fabric.power_failed(hosts.loops["b"], "b")
    near.send(b"hello?")
    hosts.wait(10)
    assert hosts.ended == []
    hosts.fabric.power_returned("b")
    hosts.wait()
    assert hosts.ended == [errno.ECONNRESET]
    assert not hosts.arrived


def test_a_reset_is_seen_by_both(hosts):
    near, far = hosts.connect()
    near.send(b"lost")
    near.reset()
    hosts.wait()
    for end in (near, far):
        with pytest.raises(OSError, match="reset"):
            end.recv(10)


def test_a_sender_waits_for_a_slow_reader(hosts):
    near, far = hosts.connect()
    while near.send(bytes(100_000)) == 100_000:
        pass
    with pytest.raises(BlockingIOError):
        near.send(b"x")

    def on_writable():
        hosts.loops["a"].remove_writer(near)
        hosts.ended.append(hosts.scheduler.now)

    hosts.loops["a"].add_writer(near, on_writable)
    hosts.wait()
    assert not hosts.ended
    far.recv(10)
    hosts.scheduler.run(lambda: bool(hosts.ended))
    assert near.send(bytes(100)) == 10


def test_a_slow_link_takes_its_time(hosts):
    near, far = hosts.connect()
    hosts.read("b", far)
    hosts.fabric.link("a", "b").bytes_per_second = 1000
    near.send(bytes(3000))
    hosts.wait(2.9)
    assert not hosts.arrived
    hosts.wait(0.2)
    assert len(hosts.arrived) == 3000
