"""What a study found as a document: its tables, figures and verdict."""
