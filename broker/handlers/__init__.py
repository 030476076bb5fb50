"""One module an API. Each checks a request, hands it to the part of the broker concerned, and shapes the answer."""
