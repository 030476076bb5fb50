"""The commented file that `barnabas pipeline init` writes. A test keeps it valid."""

from typing import Final

EXAMPLE: Final = """\
# A pipeline: topics in, SQL or Python in between, topics or Parquet out.
#
#   barnabas pipeline validate FILE      everything that is wrong with this file, with line numbers
#   barnabas pipeline run FILE --once    process what is there, then stop
#   barnabas pipeline run FILE           run until Ctrl-C
#   barnabas pipeline explain FILE       Spark's plan, the topics and their lag
#
# Any value can be set from the command line: --config sources.orders.topic=orders-2

name: paid-orders                # names the pipeline's transactions and offsets, so keep it
bootstrap: 127.0.0.1:9092        # a broker: Barnabas or Apache Kafka
# security:                      # Kafka's client settings, for a broker that requires TLS or a password;
#   security.protocol: SASL_SSL  # or --client-config FILE
#   sasl.mechanism: SCRAM-SHA-256
#   sasl.jaas.config: org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";
#   ssl.truststore.type: PEM
#   ssl.truststore.location: /etc/ca.pem
# kafka:                         # other client settings, under librdkafka's names
#   message.max.bytes: 2000000
# master: local[*]               # or spark://HOST:7077, yarn, k8s://...; --master overrides it
# spark:                         # Spark's own settings
#   spark.sql.shuffle.partitions: 4

# Every source is a view with its name. Besides the columns of its value it has _key, _topic, _partition, _offset and
# _timestamp, and _headers if it says `headers: true`.
sources:
  orders:
    topic: orders                # or topics: [a, b], or pattern: orders-.*
    from: earliest               # latest, a time (2026-11-16T08:00:00Z), or {orders: {0: 42, 1: 17}}: at first start
    value: json                  # json, avro, csv, text, bytes
    schema: id LONG NOT NULL, customer STRING, amount DOUBLE, paid BOOLEAN  # without one: inferred from the topic
    # value: avro                # with its schema as Avro writes it, as YAML or as a text:
    # schema: {type: record, name: Order, fields: [{name: id, type: long}, {name: customer, type: string}]}
    # confluent_header: true     # behind the five bytes of a schema registry
    # key: text                  # text, bytes, or {format: json, schema: ...}
    # headers: true
    # watermark: 10 seconds      # how late a record may be (by _timestamp), for windows
    # max_records_per_batch: 100000
  # customers:
  #   topic: customers
  #   value: json
  #   schema: name STRING
  #   table: true                # a compacted topic: the newest value of each key

# Each sees the sources and the transformations above it.
transforms:
  paid: |
    SELECT id, customer, round(amount, 2) AS amount, _topic, _partition, _offset
    FROM orders
    WHERE paid
  # scored:
  #   python: scoring:add_score  # scoring.py beside this file; add_score(paid, limit=10) returns a DataFrame
  #   inputs: [paid]
  #   arguments: {limit: 10}

sinks:
  out:
    from: paid
    topic: orders-paid
    partitions: 3                # creates the topic if it does not exist
    key: customer                # an SQL expression
    format: json                 # of all columns without a leading underscore; or csv, avro, text, bytes
    delivery: exactly-once       # or at-least-once, which is Spark's own sink
    # way: per-task              # how exactly-once is achieved; chosen automatically, see docs/pipelines.md
    # mode: append               # append, update, complete
  # files:
  #   from: paid
  #   parquet: paid-orders       # a folder
  #   partition_by: [customer]
  # screen:
  #   from: paid
  #   console: true

# A record that does not fit its schema ends the pipeline (stop), is left out (skip), or goes to a topic with the reason
# in its headers.
bad_records:
  topic: orders-dead
  partitions: 1

checkpoint: checkpoints/paid-orders   # how far the pipeline has come; a path that all machines share on a cluster
trigger: 2 seconds                    # how often a batch starts; or once
"""
