"""How a Java that lives for one test is started: the better part of a full compiler's work would be for nothing."""

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
