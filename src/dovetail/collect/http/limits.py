"""What one request, and all of them together, may take of a server."""

SECONDS = 10.0  # within which a request has arrived, head and body alike
SLOWEST = 1 << 14  # bytes a second of long bodies, on average
MOST_HEAD = 1 << 14  # bytes
MOST_CONNECTIONS = 1000
STOP_SECONDS = 10  # for requests under way when the server is stopped
