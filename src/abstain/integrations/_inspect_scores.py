"""Add confidences to the scores of Inspect."""

from collections.abc import Awaitable, Callable
from typing import Any

from abstain.tables.logs.answers import CONFIDENCE, token_confidences


def with_confidence(inner: Any, confidence: str) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a scorer with the grades of another one, and a confidence from token probabilities."""

    async def score(state: Any, target: Any) -> Any:
        result = await inner(state, target)
        logprobs = state.output.choices[0].logprobs if state.output.choices else None
        tokens = [token.logprob for token in logprobs.content] if logprobs else []
        confidences = token_confidences(tokens)
        if confidences:
            result.metadata = {**(result.metadata or {}), CONFIDENCE: confidences[confidence]}
        return result

    return score
