"""A survey that anybody can host: its folder, its page, its invitations, and the three servers of a try."""
