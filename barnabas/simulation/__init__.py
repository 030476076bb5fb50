"""The whole cluster on one simulated loop: a seed decides everything, and the same seed gives the same run.

The brokers are the real ones. What is simulated is what they stand on:

    loop.py         time and tasks: one queue of events, a loop for each process on it
    network.py      sockets, listeners, links that are slow or cut
    disk.py         files that a crash forgets or tears
    registry.py     the tree of cluster facts, with sessions that expire
    determinism.py  what Python would otherwise take from the machine: random bytes, threads, wall clocks

On top of that:

    machine.py      a machine: its process can crash, stand still, come back
    clients/        producers, consumers and administrators that retry as real ones do, and note what they saw
    plan.py         brokers, clients and faults, drawn from the seed       weather.py: one kind of trouble, all the time
    faults.py       what goes wrong, and how it ends
    invariants.py   what must hold after every step        checker.py: what must hold of all that clients saw
    story.py        what happened, for a person to read
"""
