"""Logs of evaluations of language models, read without the tools that wrote them."""
