"""The test runner behind `./muster test`; docs/internals/testing.md describes it."""
