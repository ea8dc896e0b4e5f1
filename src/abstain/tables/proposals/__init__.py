"""Parts of the proposals of `abstain inspect`: what says right from wrong, and class scores."""
