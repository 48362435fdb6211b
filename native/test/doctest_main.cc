// doctest's implementation and main(), compiled once for all test programs.

// The sanitizers handle signals: their reports have a stack trace, doctest's have none.
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
