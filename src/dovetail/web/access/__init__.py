"""Who may use the pages: one browser, by a link that is printed once, and no other site."""
