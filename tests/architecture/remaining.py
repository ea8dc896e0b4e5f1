"""What still stands against the rules of test_layers.py and test_words.py; only to be shortened."""

#: Packages that import a module that another package keeps to itself.
FOREIGN_PRIVATES: frozenset[str] = frozenset()

#: Three siblings or more that share their first word, and are no folder yet.
FAMILIES: frozenset[str] = frozenset()

#: Modules that import each other, inside functions too.
IN_CIRCLES: frozenset[str] = frozenset()

#: Names that two public classes, or two catalogues, share.
HOMONYMS: frozenset[str] = frozenset()
