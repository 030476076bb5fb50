import crc32c as package

from barnabas.protocol.records.checksum import crc32c


def test_it_is_the_package_s_own():
    for data in (b"", b"123456789", bytes(range(256)) * 1000):
        assert crc32c(data) == crc32c(memoryview(bytearray(data))) == package.crc32c(data)
    assert crc32c(b"123456789") == 0xE3069283
