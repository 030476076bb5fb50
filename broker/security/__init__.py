"""Who is connected, and what they may do: TLS, certificates, principals.

Modules import the `cryptography` package only when a listener needs it: a plaintext broker runs without it.
"""
