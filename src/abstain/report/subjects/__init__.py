"""One builder a subject: from a result to the document that says it."""
