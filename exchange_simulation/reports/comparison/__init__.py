"""A comparison's report: page, terminal table and figures; made from comparison.json."""
