"""What a test or a learner asks of a broker: faults, a journal of all requests, strict checks of clients."""
