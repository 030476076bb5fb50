"""Errors in records.

RecordsError
  +-- CorruptRecords           a wrong length, checksum or encoding
  +-- InvalidRecords           well-formed, but not allowed
  |     +-- NotOneBatch        a record set without a complete batch, or with several
  +-- UnsupportedMagic         not a batch of magic 2
  +-- UnsupportedCompression   a codec that does not exist
"""


class RecordsError(ValueError):
    pass


class CorruptRecords(RecordsError):
    pass


class InvalidRecords(RecordsError):
    pass


class NotOneBatch(InvalidRecords):
    pass


class UnsupportedMagic(RecordsError):
    pass


class UnsupportedCompression(RecordsError):
    pass
