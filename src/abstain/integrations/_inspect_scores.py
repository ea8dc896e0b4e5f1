"""What becomes of the scores of Inspect, whoever registers it."""

from collections.abc import Awaitable, Callable
from typing import Any

from abstain.tables.logs.answers import CONFIDENCE
from abstain.tables.logs.log_probabilities import token_confidences


def with_confidence(inner: Any, confidence: str) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return what grades as a scorer does and notes how sure the tokens of the answer are."""

    async def score(state: Any, target: Any) -> Any:
        result = await inner(state, target)
        logprobs = state.output.choices[0].logprobs if state.output.choices else None
        tokens = [token.logprob for token in logprobs.content] if logprobs else []
        confidences = token_confidences(tokens)
        if confidences:
            result.metadata = {**(result.metadata or {}), CONFIDENCE: confidences[confidence]}
        return result

    return score
