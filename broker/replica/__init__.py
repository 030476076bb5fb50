"""A partition as this broker has it: its log, its high watermark, and who waits for or fetches from it."""
