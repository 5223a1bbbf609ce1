"""Whether a deployment is right: suites of questions with checks, run against any server, compared, and reported."""
