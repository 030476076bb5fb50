import gzip

from tests.golden import FILE, PROGRAM
from tests.support.apache_kafka import run_java

if __name__ == "__main__":
    text = run_java(PROGRAM).stdout
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{FILE.name}: {text.count(chr(10))} samples")
