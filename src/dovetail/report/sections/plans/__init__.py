"""Plans, row by row and as a document, the same for the command line, files and the browser."""
