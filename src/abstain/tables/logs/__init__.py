"""Read evaluation logs of language models without the programs that wrote them."""
