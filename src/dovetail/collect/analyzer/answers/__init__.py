"""What subscribers may ask: estimates, exports, guarantees in sentences; no report is opened or counted here."""
