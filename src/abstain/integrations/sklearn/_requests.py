"""What scikit-learn's metadata routing asks of a scorer."""

from typing import Self

from sklearn.utils.metadata_routing import MetadataRequest


class TakesWeights:
    """A scorer that takes `sample_weight` where it is asked to."""

    def __init__(self) -> None:
        self._request = MetadataRequest(owner=type(self).__name__)
        self._request.score.add_request(param="sample_weight", alias=None)

    def set_score_request(self, *, sample_weight: bool | str | None = True) -> Self:
        """Ask for `sample_weight` where metadata are routed.

        Parameters
        ----------
        sample_weight : bool, str or None, default=True
            Whether it is wanted; a text is the name under which it is passed.

        Returns
        -------
        scorer
            Itself, changed.
        """
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer takes beside X and y."""
        return self._request

    @staticmethod
    def _accept_sample_weight() -> bool:
        # scikit-learn asks this of scorers in a dictionary.
        return True
