#pragma once

// The version of these headers, for code that supports several. A minor version may change the API
// until 1.0.
#define MUSTER_VERSION_MAJOR 0
#define MUSTER_VERSION_MINOR 2
#define MUSTER_VERSION_PATCH 0
#define MUSTER_VERSION_STRING "0.2.0"

// Marks what the shared library exports; everything else in it is hidden.
#define MUSTER_EXPORT __attribute__((visibility("default")))
