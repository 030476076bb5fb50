"""What a broker offers to tests and to learners: faults, a journal of all requests, strict checks of clients."""
