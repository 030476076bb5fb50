"""One module per API. Each checks a request, passes it to the responsible part of the broker, and shapes the answer."""
