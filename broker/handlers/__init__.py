"""One module per API. Each checks a request, passes it to the responsible part of the broker, and builds the answer."""
