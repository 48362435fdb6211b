// doctest with its own main(): each test file is one program. Include this in exactly one file of a
// program.
#pragma once
// The sanitizers handle signals: their reports have a stack trace, doctest's have none.
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
