"""Many batches, and many records, as columns of numbers."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


class BatchHeaders(NamedTuple):
    """The headers of consecutive batches, one column per field."""

    position: Ints
    size: Ints
    base_offset: Ints
    last_offset: Ints
    attributes: Ints
    base_timestamp: Ints
    max_timestamp: Ints
    producer_id: Ints
    record_count: Ints


class Fields(NamedTuple):
    """The records of batches, one column per field; keys, values and headers as ranges of the decoded bytes.

    A length of -1 is null. `headers` is where the headers of a record begin.
    """

    offset: Ints
    timestamp: Ints
    batch: Ints
    key_start: Ints
    key_length: Ints
    value_start: Ints
    value_length: Ints
    headers: Ints
    header_count: Ints
