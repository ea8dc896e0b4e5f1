"""Define the commands `abstain benchmark`, `abstain study` and `abstain data`."""
