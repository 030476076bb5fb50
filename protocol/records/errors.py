"""What can be wrong with records.

RecordsError
  +-- CorruptRecords           a length, a checksum or an encoding does not hold
  +-- InvalidRecords           well-formed, but against the rules
  |     +-- NotOneBatch        a record set that holds no whole batch, or more than one
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
