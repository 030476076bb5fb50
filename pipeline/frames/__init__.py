"""Sources, transformations and sinks as DataFrames."""
