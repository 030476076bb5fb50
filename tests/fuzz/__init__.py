"""A fuzzer that knows the protocol. It attacks a broker while another client checks that others are not affected."""
