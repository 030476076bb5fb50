"""A partition on this broker: its log, its high watermark, and its waiting and fetching clients."""
