"""The Python part of copy.yaml. A function gets the views that its transformation names, and returns a new one."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def marked(orders: DataFrame, suffix: str) -> DataFrame:
    return orders.withColumn("value", F.concat("value", F.lit(suffix)))
