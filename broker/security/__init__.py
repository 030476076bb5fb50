"""Who is connected, and what they may do: TLS, certificates, principals.

What needs the `cryptography` package imports it when a listener asks for it: a plaintext broker runs without it.
"""
