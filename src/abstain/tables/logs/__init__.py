"""Read logs of evaluations of language models, without the tools that wrote them."""
