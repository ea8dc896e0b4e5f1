"""Interfaces for other libraries, of which each subpackage imports one."""
