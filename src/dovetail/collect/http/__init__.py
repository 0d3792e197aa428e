"""What both servers share over HTTP: limits, problem documents, health, a clean stop; no route of either role."""
